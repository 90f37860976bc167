/** The engine's answer, or undefined when it says that there is no such thing. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (statusOf(thrown) === 404) return undefined;
    throw thrown;
  }
}

/** Waits for a stop or a removal that may be done already: gone (404), stopped (304), under way (409). */
export async function unlessGone(ending: Promise<unknown>): Promise<void> {
  try {
    await ending;
  } catch (thrown) {
    const status = statusOf(thrown);
    if (status === 404 || status === 304) return;
    if (status === 409 && /already in progress/.test(String(thrown))) return;
    throw thrown;
  }
}

export function statusOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("statusCode" in thrown)) return undefined;
  return typeof thrown.statusCode === "number" ? thrown.statusCode : undefined;
}

/** What the engine says, without the modem's "(HTTP code …)" in front. */
export const engineSays = (message: string): string =>
  message
    .replace(/^\(HTTP code \d+\) [^-]*- /, "")
    .replaceAll(/\s+/g, " ")
    .trim();

/** True for what another harness at work on the same project can cause; trying again settles it. */
export const isContention = (thrown: unknown): boolean =>
  statusOf(thrown) === 409 ||
  /is ambiguous|no such container|network \S+ not found|already in use by container/i.test(String(thrown));
