import { chmod, lstat, mkdir, rename, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { notStored } from "../../core/errors.ts";
import type { Connection } from "../../core/network.ts";
import type { GrantedNetwork } from "../../core/ports.ts";
import { boxFolders, liveness, makeBoxFolder, type Owner, removeBoxFolder } from "../../boxes/box-record.ts";
import type { BoxPlan } from "../container-spec.ts";
import type { EgressOptions } from "./egress-proxy.ts";
import type { Engine } from "../engine.ts";
import { EGRESS_SOCKET, NETWORK_FOLDER } from "../../boxes/network-relay.ts";
import { aptSettings, javaTrustStore, NETWORK_FILES, networkVariables } from "./network-settings.ts";
import { makeFolder } from "../../platform/folders.ts";

/** What a box may reach, and what its tools need for that. Without a grant there is no proxy until one is added. */
export interface NetworkRequest extends Omit<EgressOptions, "folder"> {
  /** PEM of all authorities that the tools of the host trust; called once a box is made. */
  readonly trust: () => Promise<string>;
  /** Variables for its commands, besides those that point tools at the proxy. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Settings for tools that take them from files only, by their names in the network's folder. */
  readonly files?: Readonly<Record<string, string>>;
}

/** The way out of one box, on the host's side of its wall. */
export interface BoxNetwork {
  /** Mounted into the box: the proxy's socket, certificates and settings. */
  readonly folder: string;
  /** Variables for commands that start now. */
  readonly env: () => Readonly<Record<string, string>>;
  readonly connections: () => readonly Connection[];
  readonly grant: GrantedNetwork["grant"];
  /** For a box that cannot mount the folder: a connection to the proxy; either half of it may end first. */
  readonly connect: () => Duplex;
  /** Closes the proxy; a process that resumes the box opens another one in the same folder. */
  readonly leave: () => Promise<void>;
  /** Closes the proxy and removes the folder. */
  readonly remove: () => Promise<void>;
}

/** Arranged like the folders of boxes (box-record.ts), below this folder. */
export const networksIn = (mounts: string): string => path.join(mounts, "net");

export const networkFolder = (mounts: string, session: string): string =>
  path.join(networksIn(mounts), "boxes", session, "box");

/** For a box that no engine here has: nothing of the folder is mounted, so it is removed with its maker. */
export const farNetworkFolder = (mounts: string, name: string): string =>
  path.join(farNetworksIn(mounts), "boxes", name, "box");

const farNetworksIn = (mounts: string): string => path.join(mounts, "far");

/** Removes such folders that ended runs have left. */
export async function reapFarNetworks(mounts: string): Promise<void> {
  const alive = liveness();
  for (const folder of await boxFolders(farNetworksIn(mounts)))
    if (folder.owner !== undefined && !(await alive(folder.owner)))
      await removeBoxFolder(folder).catch(() => undefined);
}

/** For a planned box. The proxy's socket is a file of this machine, which an engine elsewhere cannot mount. */
export async function networkPlace(
  { endpoint }: Engine,
  mounts: string,
  session: string,
): Promise<NonNullable<BoxPlan["network"]>> {
  if (endpoint.host.startsWith("unix:")) return { folder: networkFolder(mounts, session) };
  await reapFarNetworks(mounts);
  return { folder: farNetworkFolder(mounts, session), relayed: true };
}

/** For a box that is made now. The folder is there when this resolves; the container can be made meanwhile. */
export async function openNetwork(
  request: NetworkRequest,
  { folder, owner }: { readonly folder: string; readonly owner: Owner },
): Promise<{ readonly opened: Promise<BoxNetwork> }> {
  const above = path.dirname(folder);
  const id = path.basename(above);
  await makeBoxFolder(path.dirname(path.dirname(above)), id, owner);
  try {
    await mkdir(folder, { mode: 0o755 });
  } catch (thrown) {
    await removeNetworkFolder(above);
    throw thrown;
  }
  const opened = openIn(folder, request).catch(async (thrown: unknown) => {
    await removeNetworkFolder(above);
    throw thrown;
  });
  opened.catch(() => undefined);
  return { opened };
}

const removeNetworkFolder = (above: string): Promise<void> =>
  removeBoxFolder({ path: above, id: path.basename(above) }).catch(() => undefined);

/** For a box that was frozen with this folder; undefined if the folder is gone. */
export async function reopenNetwork(
  folder: string,
  request: NetworkRequest,
): Promise<BoxNetwork | undefined> {
  const stats = await lstat(folder).catch(() => undefined);
  if (stats?.isDirectory() !== true || stats.uid !== process.getuid?.()) return undefined;
  return openIn(folder, request);
}

/** Variables that come with a grant, until it is withdrawn. */
type Variables = NonNullable<NetworkRequest["variables"]>;

async function openIn(folder: string, request: NetworkRequest): Promise<BoxNetwork> {
  const opening: { way?: Promise<OpenProxy> } = {};
  const proxy = (): Promise<OpenProxy> => {
    opening.way ??= openProxy(folder, request).catch((thrown: unknown) => {
      delete opening.way;
      throw thrown;
    });
    return opening.way;
  };
  const opened: { way?: OpenProxy } = request.grants.length > 0 ? { way: await proxy() } : {};
  const added = new Set<{ readonly grants: NetworkRequest["grants"]; readonly variables: Variables }>();
  const leave = async (): Promise<void> => {
    await (await opening.way?.catch(() => undefined))?.leave();
  };
  const above = path.dirname(folder);
  return {
    folder,
    env: () => {
      const grants = [...request.grants, ...[...added].flatMap((each) => each.grants)];
      if (grants.length === 0) return {};
      const more = [...added].map(({ variables }) => variables);
      return Object.assign({}, networkVariables(grants), request.variables, ...more) as Variables;
    },
    connections: () => opened.way?.connections() ?? [],
    grant: async (grants, variables = {}, files = {}) => {
      opened.way = await proxy();
      await putAll(folder, files);
      const withdraw = await opened.way.grant(grants);
      const one = { grants, variables };
      added.add(one);
      return () => {
        added.delete(one);
        withdraw();
      };
    },
    connect: () => connect({ path: path.join(folder, EGRESS_SOCKET), allowHalfOpen: true }),
    leave,
    remove: async () => {
      await leave();
      await removeBoxFolder({ path: above, id: path.basename(above) });
    },
  };
}

/** The proxy, and the files beside its socket. */
interface OpenProxy extends Pick<BoxNetwork, "connections" | "leave"> {
  readonly grant: (more: NetworkRequest["grants"]) => Promise<() => void>;
}

async function openProxy(folder: string, request: NetworkRequest): Promise<OpenProxy> {
  const { trust: askTrust, variables: _, files = {}, ...options } = request;
  const [{ openEgress }, trust] = await Promise.all([import("./egress-proxy.ts"), askTrust()]);
  const egress = await openEgress({ ...(trust === "" ? {} : { roots: trust }), ...options, folder });
  const leave = async (): Promise<void> => {
    await egress[Symbol.asyncDispose]();
  };
  const written = { authority: egress.authority };
  const write = async (): Promise<void> => {
    const { authority } = written;
    const bundle = authority === null ? trust : `${trust.trimEnd()}\n${authority}`;
    await Promise.all([
      put(folder, NETWORK_FILES.bundle, bundle),
      put(folder, NETWORK_FILES.trustStore, javaTrustStore(bundle)),
    ]).catch(unwritten(folder));
  };
  try {
    const apt = put(folder, NETWORK_FILES.apt, aptSettings()).catch(unwritten(folder));
    await Promise.all([write(), apt, putAll(folder, files)]);
  } catch (thrown) {
    await leave();
    throw thrown;
  }
  return {
    connections: () => egress.ledger().connections,
    grant: async (more) => {
      const withdraw = egress.grant(more);
      // If the proxy must look into connections now, it has an authority from then on.
      if (egress.authority === written.authority) return withdraw;
      written.authority = egress.authority;
      await write();
      return withdraw;
    },
    leave,
  };
}

const putAll = async (folder: string, files: Readonly<Record<string, string>>): Promise<void> => {
  const written = Object.entries(files).map(async ([name, text]) => {
    await foldersFor(folder, name);
    await put(folder, path.join(NETWORK_FOLDER, name), text);
  });
  await Promise.all(written).catch(unwritten(folder));
};

/** Gives back the rights that a strict umask took: the box's user is no user of the host. */
async function foldersFor(folder: string, name: string): Promise<void> {
  const parts = path.dirname(name).split("/");
  for (let depth = 1; depth <= parts.length; depth += 1) {
    const at = path.join(folder, ...parts.slice(0, depth));
    if (at === folder) continue;
    makeFolder(at, 0o777);
    await chmod(at, 0o755);
  }
}

const unwritten = (folder: string): ((thrown: unknown) => never) =>
  notStored("the files for the network of a box", folder);

/** Writes the file whole or not at all: commands of a resumed box may be reading it. */
async function put(folder: string, inBox: string, content: string | Buffer): Promise<void> {
  const file = path.join(folder, path.relative(NETWORK_FOLDER, inBox));
  await writeFile(`${file}.new`, content);
  await chmod(`${file}.new`, 0o644);
  await rename(`${file}.new`, file);
}
