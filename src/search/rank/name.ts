/** Names that say nothing: such a file is called as its folder is. */
const NAMELESS = new Set(["index", "mod", "__init__", "main", "lib", "init"]);

/** The folder of a file, and what the file is called without its ending. */
export function namedBy(path: string): { readonly folder: string; readonly name: string } {
  const cut = path.lastIndexOf("/");
  const folder = path.slice(0, Math.max(0, cut));
  const name = path.slice(cut + 1).replace(/(.)\.[^.]*$/, "$1");
  return {
    folder,
    name: NAMELESS.has(name) && folder !== "" ? folder.slice(folder.lastIndexOf("/") + 1) : name,
  };
}
