import type { Plugin } from "rolldown";

/** Packages that dockerode loads at once and needs for one way of working only: engines over ssh, builds with BuildKit. */
const LAZY: readonly (readonly [file: string, loads: string, calls: RegExp])[] = [
  ["docker-modem/lib/ssh.js", "require('ssh2').Client", /\bClient(?=\()/g],
  ["dockerode/lib/session.js", 'require("@grpc/grpc-js")', /\bgrpc(?=\.)/g],
  ["dockerode/lib/session.js", 'require("@grpc/proto-loader")', /\bprotoLoader(?=\.)/g],
];

/** Has them loaded where they are used: together they cost twice what everything else of a start does. */
export const lazyRequires: Plugin = {
  name: "lazy-requires",
  transform(code, id) {
    const rows = LAZY.filter(([file]) => id.endsWith(`/node_modules/${file}`));
    return rows.length === 0 ? null : rows.reduce(lazily, code);
  },
};

function lazily(code: string, [file, loads, calls]: (typeof LAZY)[number]): string {
  const eager = `= ${loads}`;
  const used = code.replace(eager, "= undefined").replaceAll(calls, `(${loads})`);
  if (!code.includes(eager) || used.split(`(${loads})`).length < 2)
    throw new Error(`${file} no longer loads and uses ${loads} as it did: see bin/lazy-requires.ts`);
  return used;
}
