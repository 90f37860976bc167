import type { Role } from "../words.ts";

/** Names of folders, in lower case, by what is in them. */
const FOLDERS: ReadonlyMap<string, Role> = new Map(
  (
    [
      [
        "vendored",
        "vendor vendors third_party third-party thirdparty 3rdparty external externals extern godeps _vendor",
      ],
      [
        "test",
        "test tests testing spec specs __tests__ __mocks__ testdata test-data fixtures e2e it integration-tests",
      ],
      ["example", "example examples sample samples demo demos playground"],
      ["docs", "doc docs documentation"],
    ] as const
  ).flatMap(([role, names]) => names.split(" ").map((name) => [name, role] as const)),
);

const ORDER: readonly Role[] = ["vendored", "test", "example", "docs"];

const TEST_NAME =
  /(?:^test_.*|^conftest|[._-](?:tests?|spec|e2e|bench)|(?:Tests?|Spec|IT))\.[a-z0-9]+$|^test\.[a-z0-9]+$/;
const PROSE = new Set(["markdown", "restructuredtext", "asciidoc", "tex", "text"]);
const SETTINGS = new Set(["json", "yaml", "toml", "ini", "xml", "csv"]);

/** What a file is to its project, by its name and its language. */
export function roleOf(path: string, language: string): Role {
  const names = path.split("/");
  const name = names.pop() ?? "";
  const found = new Set(names.map((folder) => FOLDERS.get(folder.toLowerCase())));
  const byFolder = ORDER.find((role) => found.has(role));
  if (byFolder === "vendored") return "vendored";
  if (byFolder === "test" || TEST_NAME.test(name)) return "test";
  if (byFolder !== undefined) return byFolder;
  if (PROSE.has(language)) return "docs";
  return SETTINGS.has(language) ? "config" : "source";
}
