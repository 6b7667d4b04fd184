/** Redirects to the version that the page's reader has agreed to, at first to the newest. */

import { addressOf, agreedVersion } from "./versions.ts";

const newest = document.documentElement.dataset["version"]!;
location.replace(addressOf(agreedVersion() ?? newest) + location.hash);
