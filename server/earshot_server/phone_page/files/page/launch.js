import{a as e,e as o}from"./shared-MX65Y3TO.js";var t=document.documentElement.dataset.version;location.replace(o(e()??t)+location.hash);
