/**
 * Write the app's page to a folder, `www` by default: this example and the package, as JavaScript.
 *
 *     node build.ts [FOLDER]
 *
 * Needs Node 24 and nothing else: types are erasable, so nothing is compiled or bundled.
 */

import { globSync } from "node:fs";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";

import { SERVER } from "./operators.ts";

const HERE = import.meta.dirname;
/** Where the package is. An app elsewhere has it in `node_modules/earshot-phone`. */
const PACKAGE = join(HERE, "..", "..");
/** The encoder that all phones share, as Earshot ships it. */
const ENCODER = join(PACKAGE, "../../protocol/earshot_protocol/data/contrast-3.tflite");
const OUT = process.argv[2] ?? join(HERE, "www");

/** Addresses of the imports that browsers cannot resolve. */
const PLACES: Readonly<Record<string, string>> = {
  "earshot-phone": "./earshot-phone/index.js",
  "earshot-phone/hearing": "./earshot-phone/hearing.js",
};

/** Return a module as JavaScript for browsers. */
function script(source: string): string {
  const imported = /\b(from |import\()"([^"]+)"/g;
  return stripTypeScriptTypes(source).replace(imported, (_, before: string, name: string) => {
    return `${before}"${PLACES[name] ?? name.replace(/\.ts$/, ".js")}"`;
  });
}

async function write(path: string, text: string): Promise<void> {
  const place = join(OUT, path);
  await mkdir(dirname(place), { recursive: true });
  await writeFile(place, text);
}

process.removeAllListeners("warning"); // Node warns that stripping types is experimental
await rm(OUT, { recursive: true, force: true });
const rooms = "{index,hearing,page/worklet,{phone,protocol,store,transport,voting}/**/*}.ts";
for (const path of globSync(rooms, { cwd: PACKAGE })) {
  const place = join("earshot-phone", path.replace(/\.ts$/, ".js"));
  await write(place, script(await readFile(join(PACKAGE, path), "utf8")));
}
for (const name of ["main", "device_key", "operators"]) {
  await write(`${name}.js`, script(await readFile(join(HERE, `${name}.ts`), "utf8")));
}
const page = await readFile(join(HERE, "index.html"), "utf8");
await write("index.html", page.replace("{server}", SERVER));
await copyFile(join(HERE, "app.css"), join(OUT, "app.css"));
await copyFile(ENCODER, join(OUT, "contrast-3.tflite"));
