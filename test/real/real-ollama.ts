import { ollamaAddress } from "../../src/models/providers/ollama-client.ts";
import { ollamaListing } from "../../src/models/providers/ollama-server.ts";

/** The variable that names the model. */
export const OLLAMA_MODEL = "HARNESS_REAL_MODEL";

type Env = Readonly<Record<string, string | undefined>>;

/** The Ollama of `OLLAMA_HOST` and the model to use, or the reason why there is none. */
export async function realOllama(
  env: Env,
): Promise<{ readonly url: string; readonly model: string } | string> {
  const url = ollamaAddress(env, null);
  const signal = new AbortController().signal;
  const listing = await ollamaListing({ baseUrl: url, signal, timeoutMs: 5000 });
  if (listing.kind !== "listed") return `no Ollama that can be used answers at ${url}`;
  const model = env[OLLAMA_MODEL] ?? listing.models[0]?.name;
  return model === undefined ? `the Ollama at ${url} has no model` : { url, model };
}

interface Real {
  /** The server's address: Ollama's API, and OpenAI's under `/v1`. */
  readonly url: string;
  readonly model: string;
  /** Tokens computed so far; undefined if the server is not one of these tests and does not report them. */
  readonly computed: () => Promise<number | undefined>;
}

/** The server that `npm run test:real` chose. */
export function realServer(): Real {
  const { HARNESS_REAL_URL: url, [OLLAMA_MODEL]: model } = process.env;
  if (url === undefined || model === undefined)
    throw new Error("started by hand, so there is no model: npm run test:real -- FILE");
  const computed = async (): Promise<number | undefined> => {
    const answer = await fetch(`${url}/computed`);
    return answer.ok ? ((await answer.json()) as { readonly tokens: number }).tokens : undefined;
  };
  return { url, model, computed };
}
