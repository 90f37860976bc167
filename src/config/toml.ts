import { parse, TomlError } from "smol-toml";
import { type ConfigDocument, configError } from "./document.ts";
import { tomlLines } from "./toml-lines.ts";

/** A TOML file of `[[table]]` entries as a value, with a way to say in which line each key stands. */
export function parseTomlDocument(file: string, text: string, table: string): ConfigDocument {
  const body = text.replace(/^\uFEFF/, "");
  const value = parsed(file, body);
  const { headers, keys } = tomlLines(body, table);
  const at = ([head, index, key]: readonly PropertyKey[]): string => {
    const entry = typeof index === "number" && headers.length > index ? index : -1;
    const line =
      keys.get(`${entry} ${String(key)}`) ?? headers[entry] ?? keys.get(`-1 ${String(head)}`) ?? headers[0];
    return line === undefined ? file : `${file}:${line}`;
  };
  return { value, at };
}

function parsed(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    const [said = ""] = thrown.message.split("\n");
    const message = said.replace(/^Invalid TOML document: /, "");
    throw configError(`${file}:${thrown.line}:${thrown.column}`, `${message}; expected TOML`);
  }
}
