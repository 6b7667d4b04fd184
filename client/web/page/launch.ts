/** Leads to the version of the page that its reader has agreed to, and at first to the newest. */

import { addressOf, agreedVersion } from "./versions.ts";

const newest = document.documentElement.dataset["version"]!;
location.replace(addressOf(agreedVersion() ?? newest) + location.hash);
