import { agreedVersion } from "./versions.js";
const newest = document.documentElement.dataset["version"];
const root = new URL(`../../${agreedVersion() ?? newest}/page/`, import.meta.url);
location.replace(root.href + location.hash);
