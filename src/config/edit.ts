import { readlink, realpath, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { parseConfigDocument } from "./document.ts";
import { makeFolder } from "./folder.ts";
import { withValue } from "./insert.ts";
import { hintFor, readLayer } from "./layer.ts";
import { readConfigText } from "./read.ts";
import { ALIASES, SETTING_KEYS, type SettingKey } from "./schema.ts";
import { nested, valueFromText } from "./text.ts";

/** The dotted path of a setting a person named, aliases resolved. */
export function settingPath(dotted: string): SettingKey | "search.store" | "search.url" {
  const real = (Object.hasOwn(ALIASES, dotted) ? ALIASES[dotted] : undefined) ?? dotted;
  if (real === "search.store" || real === "search.url") return real;
  const key = SETTING_KEYS.find((known) => known === real);
  if (key !== undefined) return key;
  throw new HarnessError(EXIT.usage, `${dotted}: unknown key; ${hintFor(real)}`, "harness config list");
}

/** Writes one setting into the user's file; its comments and other keys stay. All or nothing. */
export async function setSetting(file: string, dotted: string, text: string): Promise<void> {
  const key = settingPath(dotted);
  const value = valueFromText(key, text);
  readLayer(nested(key, value), () => dotted);
  const before = (await readConfigText(file)) ?? "{}\n";
  const document = parseConfigDocument(file, before);
  const alias = Object.keys(ALIASES).find((other) => ALIASES[other] === key && hasKey(document.value, other));
  const edited = withValue(before, (alias ?? key).split("."), value);
  readLayer(parseConfigDocument(file, edited).value, document.at);
  await replaceFile(await behindLink(file), edited);
}

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);

/** Where to write so that a link into someone's dotfiles stays one, even when it points at nothing yet. */
async function behindLink(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const target = await readlink(file).catch(() => undefined);
    return target === undefined ? file : path.resolve(path.dirname(file), target);
  }
}

async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await makeFolder(path.dirname(file));
    await writeFile(temporary, text, { mode: 0o600, flush: true });
    await rename(temporary, file);
  } catch (thrown) {
    await rm(temporary, { force: true }).catch(() => undefined);
    const folder = path.dirname(file);
    const look = `ls -ld ${folder} && df -h ${folder}`;
    throw new HarnessError(EXIT.usage, `${file}: cannot be written: ${reasonOf(thrown)}`, look, thrown);
  }
}
