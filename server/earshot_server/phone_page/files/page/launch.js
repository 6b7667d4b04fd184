import{a as e}from"./shared-UKZ64CUN.js";var o=document.documentElement.dataset.version,t=new URL(`../../${e()??o}/page/`,import.meta.url);location.replace(t.href+location.hash);
