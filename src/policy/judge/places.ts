import type { Place } from "../effects/effect.ts";
import type { PathFacts, Places } from "./files.ts";

interface Context {
  readonly workspace: string;
  readonly home: string;
}

const SINKS = /^\/dev\/(?:null|zero|full|stdin|stdout|stderr|tty|random|urandom|fd\/\d+)$/;
const isIn = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`);

export function placesFor({ workspace, home }: Context): Places {
  const project = (path: Place): boolean =>
    path !== null &&
    isIn(workspace, path) &&
    !/\/(?:node_modules|\.git)(?:\/|$)/.test(path.slice(workspace.length));
  return { workspace, home, isProject: project, facts: (path) => factsOf(path, workspace) };
}

function factsOf(path: string, workspace: string): PathFacts {
  const facts = { secret: null, trap: null, ignored: false } as const;
  if (SINKS.test(path)) return { ...facts, kind: "sink" };
  if (isIn("/dev", path)) return { ...facts, kind: "device" };
  if (isIn(workspace, path)) {
    const trap = /\/(?:\.git|\.vscode|\.husky)(?:\/|$)/.test(path) ? "git or an editor" : null;
    const secret = /\/\.env(?:\.|$)|\.pem$|\.key$/.test(path) ? "a key" : null;
    return { kind: "workspace", trap, secret, ignored: false };
  }
  if (isIn("/tmp", path) || isIn("/var/tmp", path)) return { ...facts, kind: "temp" };
  if (/^\/(?:usr|bin|lib)/.test(path)) return { ...facts, kind: "system" };
  return { ...facts, kind: "outside", trap: /\/\.(?:bash|zsh|profile|ssh)/.test(path) ? "a shell" : null };
}
