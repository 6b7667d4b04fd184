import{a as e,e as o}from"./shared-8.js";var t=document.documentElement.dataset.version;location.replace(o(e()??t)+location.hash);
