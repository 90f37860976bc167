import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import path from "node:path";
import { gitBackend } from "../fixtures/git-backend.ts";
import { NODE_ADDRESS } from "./cluster-places.ts";

/** A repository host that pods can reach: git's own server behind TLS, at the node's address. */
export interface GitHost extends AsyncDisposable {
  /** The port on this machine's loopback. */
  readonly port: number;
  /** The certificate of its authority, in PEM. */
  readonly authority: string;
  /** Creates a repository with one commit of these files; returns its path below the host. */
  readonly repository: (name: string, files: Readonly<Record<string, string>>) => string;
}

/** Key and certificate of a server at the node's address, and of the signing authority; the folder must exist. */
export function nodeCertificate(folder: string): {
  readonly key: string;
  readonly cert: string;
  readonly authority: string;
} {
  const openssl = (words: string): void =>
    void execFileSync("openssl", words.split(" "), { cwd: folder, stdio: "ignore" });
  const made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
  openssl(
    `${made} -subj /CN=tests-authority -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem`,
  );
  openssl(
    `${made} -CA ca.pem -CAkey ca.key -subj /CN=node -addext basicConstraints=CA:FALSE -addext subjectAltName=IP:${NODE_ADDRESS} -keyout own.key -out own.pem`,
  );
  const read = (file: string): string => readFileSync(path.join(folder, file), "utf8");
  return { key: read("own.key"), cert: read("own.pem"), authority: read("ca.pem") };
}

export async function gitHost(folder: string): Promise<GitHost> {
  const at = (...parts: readonly string[]): string => path.join(folder, ...parts);
  mkdirSync(at("repos"), { recursive: true });
  const { key, cert, authority } = nodeCertificate(folder);
  const server = createServer({ key, cert }, (request, response) =>
    gitBackend(at("repos"), request, response),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    authority,
    repository: (name, files) => {
      const work = at("work", name);
      for (const [file, text] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(work, file)), { recursive: true });
        writeFileSync(path.join(work, file), text);
      }
      const git = (...words: readonly string[]): void =>
        void execFileSync(
          "git",
          ["-C", work, "-c", "user.name=t", "-c", "user.email=t@example.org", ...words],
          {
            stdio: "ignore",
            env: { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
          },
        );
      git("init", "-q", "-b", "main");
      git("add", "-A");
      git("commit", "-qm", "first");
      git("clone", "-q", "--bare", work, at("repos", `${name}.git`));
      return `/${name}.git`;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
