/** Leads to the version of the page that its reader has agreed to, and at first to the newest. */

import { agreedVersion } from "./versions.ts";

const newest = document.documentElement.dataset["version"]!;
const root = new URL(`../../${agreedVersion() ?? newest}/page/`, import.meta.url);
location.replace(root.href + location.hash);
