/** A command as it is judged: with the variables that earlier calls exported, because they say what it will do. */
export function judgedText(command: string, env: Readonly<Record<string, string>>): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
  return exports.join("") + command;
}

const quoted = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
