/** One archive of packages, as apt's own configuration names it. */
export interface AptSource {
  readonly mirror: string;
  readonly suite: string;
  readonly components: readonly string[];
  /** Keyring files that sign it; empty when apt's trusted ones do. */
  readonly keyrings: readonly string[];
}

/** Reads one file of apt's sources, in the one-line or the deb822 form; entries that are switched off are left out. */
export function parseAptSources(text: string): readonly AptSource[] {
  return /^Types\s*:/im.test(text) ? parseStanzas(text) : text.split("\n").flatMap(parseLine);
}

/** The archive that holds this release itself, not its updates or security fixes. */
export function sourceFor(codename: string, sources: readonly AptSource[]): AptSource | undefined {
  const own = sources.filter(({ suite, components }) => suite === codename && components.includes("main"));
  const [first] = own;
  if (first === undefined) return undefined;
  const components = own
    .filter(({ mirror }) => mirror === first.mirror)
    .flatMap((source) => source.components);
  return { ...first, components: [...new Set(components)] };
}

function parseStanzas(text: string): readonly AptSource[] {
  const stanzas = text.replaceAll(/^#.*\n?/gm, "").split(/\n\s*\n/);
  return stanzas.flatMap((stanza) => {
    const fields = readFields(stanza);
    const words = (name: string): string[] =>
      (fields.get(name) ?? "").split(/\s+/).filter((word) => word !== "");
    if (!words("types").includes("deb") || /^(?:no|false|0)$/i.test(fields.get("enabled") ?? "")) return [];
    const keyrings = words("signed-by").filter((word) => word.startsWith("/"));
    return words("uris")
      .filter(isMirror)
      .flatMap((mirror) =>
        words("suites").map((suite) => ({ mirror, suite, components: words("components"), keyrings })),
      );
  });
}

function readFields(stanza: string): ReadonlyMap<string, string> {
  const unfolded = stanza.replaceAll(/\n[ \t]+/g, " ");
  const pairs = unfolded.split("\n").flatMap((line) => {
    const match = /^([A-Za-z-]+)\s*:\s*(.*)$/.exec(line);
    return match === null ? [] : [[(match[1] ?? "").toLowerCase(), match[2] ?? ""] as const];
  });
  return new Map(pairs);
}

function parseLine(line: string): readonly AptSource[] {
  const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
  if (match === null) return [];
  const [, options = "", mirror = "", suite = "", components = ""] = match;
  const signed = /signed-by=(\S+)/.exec(options)?.[1]?.split(",") ?? [];
  const keyrings = signed.filter((file) => file.startsWith("/"));
  return isMirror(mirror) ? [{ mirror, suite, components: components.trim().split(/\s+/), keyrings }] : [];
}

const isMirror = (uri: string): boolean => /^(?:https?|file):\/\//.test(uri);
