import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { parseGitConfig } from "./config.ts";
import { readSmall } from "./solid.ts";

interface Identity {
  readonly name: string;
  readonly email: string;
}

/** Who a commit is by: what the command itself says with -c, the user's own git settings, or the harness. */
export async function commitIdentity(home: string, config: readonly string[]): Promise<Identity> {
  const given = new Map(config.map(pair));
  const odd = [...given.keys()].find((key) => key !== "user.name" && key !== "user.email");
  if (odd !== undefined)
    throw new HarnessError(
      EXIT.refused,
      `a commit takes no other setting than user.name and user.email, found ${odd}`,
      "leave out -c, or commit it yourself",
    );
  const files = [path.join(home, ".config", "git", "config"), path.join(home, ".gitconfig")];
  const texts = await Promise.all(files.map((file) => readSmall(file)));
  const own = texts.flatMap((text) => parseGitConfig(text ?? "") ?? []);
  const value = (key: string): string | undefined =>
    given.get(key) ?? own.findLast((entry) => entry.key === key)?.value;
  return { name: value("user.name") ?? "harness", email: value("user.email") ?? "harness@localhost" };
}

function pair(text: string): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  return at < 0 ? [text.toLowerCase(), "true"] : [text.slice(0, at).toLowerCase(), text.slice(at + 1)];
}
