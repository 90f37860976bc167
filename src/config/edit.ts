import { EXIT, HarnessError } from "../core/errors.ts";
import { parseConfigDocument } from "./document.ts";
import { withValue } from "./insert.ts";
import { hintFor, readLayer } from "./layer.ts";
import { readConfigText } from "./read.ts";
import { replaceFile } from "./replace.ts";
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
  await replaceFile(file, edited);
}

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);
