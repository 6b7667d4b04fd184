// What declarations of a package export, as JSON: `node package_exports.js TYPESCRIPT FILE...`
// For each file a list of its exports, in order: name, comment, and declaration without comment.

import { createRequire } from "node:module";
import { resolve } from "node:path";

const [library, ...paths] = process.argv.slice(2);
const ts = createRequire(import.meta.url)(library);
const files = paths.map((path) => resolve(path));
const program = ts.createProgram(files, {
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
});
const checker = program.getTypeChecker();

const isPrivate = (member) =>
  (member.name !== undefined && ts.isPrivateIdentifier(member.name)) ||
  (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0;

/** The text of a statement, without its comment, its keywords and private members. */
function declared(statement) {
  const [start, text] = [statement.getStart(), statement.getText()];
  const cut = (ts.isClassDeclaration(statement) ? statement.members : []).filter(isPrivate);
  let [kept, from] = ["", 0];
  for (const { pos, end } of cut) {
    kept += text.slice(from, pos - start);
    from = end - start;
  }
  return (kept + text.slice(from)).replace(/^export (declare )?/, "");
}

function exported(symbol) {
  const whole = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const [declaration] = whole.declarations;
  const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const comment = ts.displayPartsToString(whole.getDocumentationComment(checker));
  return { name: symbol.name, comment, declaration: declared(statement) };
}

const pages = files.map((file) =>
  checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file))).map(exported),
);
process.stdout.write(JSON.stringify(pages));
