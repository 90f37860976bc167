/** Reduces Qdrant's published OpenAPI schema to the part that the store uses: node bin/qdrant-schema.ts openapi.json */
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import process from "node:process";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schema = Readonly<Record<string, Json>>;

interface Published {
  readonly openapi: string;
  readonly info: Schema;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}

const NAMED = "/collections/{collection_name}";
const KEPT: Readonly<Record<string, readonly string[]>> = {
  "/": ["get"],
  "/collections": ["get"],
  [NAMED]: ["get", "put", "delete"],
  [`${NAMED}/index`]: ["put"],
  [`${NAMED}/points`]: ["post", "put"],
  [`${NAMED}/points/delete`]: ["post"],
  [`${NAMED}/points/vectors`]: ["put"],
  [`${NAMED}/points/scroll`]: ["post"],
  [`${NAMED}/points/count`]: ["post"],
  [`${NAMED}/facet`]: ["post"],
  [`${NAMED}/points/query/batch`]: ["post"],
};
const PROSE = new Set(["description", "summary", "tags", "example", "deprecated"]);
const REF = "#/components/schemas/";

/** Removes prose; property names are always kept. */
function bare(value: Json, names = false): Json {
  if (Array.isArray(value)) return value.map((item: Json) => bare(item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => names || !PROSE.has(key));
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, bare(inner, key === "properties" && !names)]),
  );
}

function refsIn(value: Json): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "$ref" && typeof inner === "string" ? [inner.slice(REF.length)] : refsIn(inner),
  );
}

const [file = ""] = process.argv.slice(2);
const published = JSON.parse(await readFile(file, "utf8")) as Published;
const paths = Object.fromEntries(
  Object.entries(KEPT).map(([route, methods]) => [
    route,
    Object.fromEntries(methods.map((method) => [method, bare(published.paths[route]?.[method] ?? null)])),
  ]),
);
const schemas: Record<string, Json> = {};
for (const wanted = [...refsIn(paths)]; wanted.length > 0;) {
  const name = wanted.pop() ?? "";
  if (name in schemas) continue;
  schemas[name] = bare(published.components.schemas[name] ?? null);
  wanted.push(...refsIn(schemas[name]));
}
const { title = "", version = "", license = "" } = published.info;
const kept = {
  openapi: published.openapi,
  info: { title, version, license },
  paths,
  components: { schemas },
};
const target = path.join(import.meta.dirname, "../test/fixtures/qdrant/openapi-1.19.json");
await writeFile(target, `${JSON.stringify(kept)}\n`);
