import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Settings } from "../../config/settings-schema.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS } from "../../core/tool.ts";
import type { JudgeText, KnownValue } from "../../extensions/web/web-text.ts";
import type { HarnessRequests } from "../harness-requests.ts";
import { type Host, packageRoot } from "../host.ts";

interface WebParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly requests: Pick<HarnessRequests, "send" | "serviceAt">;
  readonly warn: (text: string) => void;
}

/** The web tools that the user's settings turn on; undefined, with nothing loaded, if there are none. */
export async function openWebTools(parts: WebParts): Promise<Extensions | undefined> {
  const { host, settings, requests } = parts;
  const { fetch, search } = settings.web;
  if (!fetch && search === null) return undefined;
  const { secretJudge } = await import("../../extensions/web/web-text.ts");
  const holdsSecret = secretJudge(knownValues(host, settings));
  const tools: AnyTool[] = search === null ? [] : await searchTools(parts, search, holdsSecret);
  if (fetch) {
    const [{ webFetchTool }, { htmlReader }] = await Promise.all([
      import("../../extensions/web/web-fetch.ts"),
      import("../../extensions/web/web-text.ts"),
    ]);
    const readHtml = htmlReader(threadProgram());
    tools.push(webFetchTool({ requests, readHtml, holdsSecret, now: () => new Date() }));
  }
  return { ...NO_EXTENSIONS, tools: () => tools };
}

/** A service without its key is not asked, and the run goes on. */
async function searchTools(
  { host: { env }, requests, warn }: WebParts,
  { provider, url }: NonNullable<Settings["web"]["search"]>,
  holdsSecret: JudgeText,
): Promise<AnyTool[]> {
  const [{ webSearchTool }, { SERVICES }] = await Promise.all([
    import("../../extensions/web/web-search.ts"),
    import("../../extensions/web/web-search.ts"),
  ]);
  const { url: usual = "", key: variable } = SERVICES[provider];
  const key = variable === undefined ? "" : (env[variable]?.trim() ?? "");
  if (variable !== undefined && !/^[\u0021-\u007e]+$/.test(key)) {
    const why = key === "" ? "is not set" : "contains characters that a request cannot carry";
    warn(`web_search is left out: ${provider} needs a key, and ${variable} ${why}`);
    return [];
  }
  const base = url ?? usual;
  const service = requests.serviceAt(new URL(base));
  return [webSearchTool({ requests: service, provider, base, key, holdsSecret })];
}

/** Keys of services and of models; the secrets of the settings are added to them. */
const KEYS = ["TAVILY_API_KEY", "EXA_API_KEY", "BRAVE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
const LEAST = 8;

const knownValues = (
  { env }: Pick<Host, "env">,
  { secrets }: Pick<Settings, "secrets">,
): readonly KnownValue[] =>
  [...new Set([...KEYS, ...Object.keys(secrets)])].flatMap((name) => {
    const value = env[name] ?? "";
    return value.length < LEAST ? [] : [{ name, value }];
  });

/** The worker is a file of its own in the bundle; from sources, Node runs the source file. */
function threadProgram(): URL {
  const source = path.join(packageRoot, "src/extensions/web/page-worker.ts");
  const isSource = import.meta.url.endsWith(".ts") && existsSync(source);
  return pathToFileURL(isSource ? source : path.join(packageRoot, "dist/page-worker.cjs"));
}
