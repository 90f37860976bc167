import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Duplex } from "node:stream";
import { type Pod, PodKeeper, type PodNetwork, type Policy } from "./pod-keeper.ts";
import { type Sandbox, SANDBOX_API, SandboxController, unlikeSandbox } from "./sandbox-controller.ts";
import { type Claim, POOL_API, WarmPool } from "./warm-pool.ts";
import { serveSocket } from "./web-socket.ts";

/**
 * An API server modelled on recorded traffic of a real one (test/fixtures/kubernetes): objects, lists, watches and
 * attached containers of one namespace. Its pods are containers of the engine with the real runner.
 */
export interface FakeApi extends AsyncDisposable {
  readonly kubeconfig: string;
  /** Method and path of every call, in order. */
  readonly heard: readonly string[];
  readonly faults: Fault[];
  readonly named: (resource: Resource) => readonly string[];
  /** Cuts every connection, old and new, until the server is back. */
  readonly away: (is: boolean) => void;
  /** What a webhook changes in every new pod. */
  mutate: ((pod: Pod) => void) | undefined;
  /** The next attached connection is cut after it has received this many bytes. */
  cutAttachAfter: number;
  /** Cuts every attached connection after it has sent this many more bytes. */
  readonly cutSentAfter: (bytes: number) => void;
  readonly addPolicy: (policy: Policy) => Promise<Policy>;
  /** Resolves once the pod is in this state. */
  readonly until: (pod: string, is: (pod: Pod) => boolean) => Promise<void>;
  /** No node has room for new pods; `message` is the scheduler's reason. */
  noRoom: (message: string | undefined) => void;
  /** The scheduler's message for one waiting pod; undefined: there is a node for it. */
  readonly place: (pod: string, message: string | undefined) => void;
  /** Undefined: agent-sandbox is not installed. */
  readonly sandboxes: SandboxController | undefined;
  readonly installSandboxes: () => SandboxController;
  /** Installs one pool with these objects, and Sandboxes. */
  readonly installPool: (objects: readonly object[]) => WarmPool;
  readonly pool: WarmPool | undefined;
  /** Runs a script in the pod's box by another way than the runner. */
  readonly intrude: (pod: string, script: string) => Promise<void>;
  /** How far the server's clock is ahead of ours, in milliseconds. */
  clockAhead: number;
  /** Rights that nobody has: `verb resource`. */
  readonly denied: Set<string>;
  /** Removes a pod, as somebody else would. */
  readonly remove: (pod: string) => Promise<unknown>;
  /** The command lines of the processes in the pod's box. */
  readonly processes: (pod: string) => Promise<readonly string[]>;
  /** The node ends the pod for this reason. */
  readonly evict: (pod: string, why: { readonly reason: string; readonly message: string }) => Promise<void>;
}

type Resource = "pods" | "networkpolicies";
type ServedResource = Resource | "sandboxes" | "sandboxclaims" | "sandboxwarmpools";

/** Applied to the first matching calls, this many times. */
export interface Fault {
  readonly fits: RegExp;
  times: number;
  readonly status: number;
  readonly body: unknown;
  /** The body is an event of a watch that began well. */
  readonly streamed?: true;
}

export const statusOf = (code: number, reason: string, message: string): unknown => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  reason,
  code,
});

const PLACE =
  /^\/(?:api\/v1|apis\/networking\.k8s\.io\/v1|apis\/(?:extensions\.)?agents\.x-k8s\.io\/v1beta1)\/namespaces\/[^/]+\/(pods|networkpolicies|sandbox(?:es|claims|warmpools))(?:\/([^/]+))?(\/attach)?$/;

export async function startKubernetesApi(network: PodNetwork, scratch: string): Promise<FakeApi> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const keeper = await PodKeeper.open(network, scratch);
  const state: State = { away: false, sent: Infinity, sandboxes: undefined, pool: undefined };
  const attached = new Set<Duplex>();
  const heard: string[] = [];
  const api: FakeApi = {
    kubeconfig: kubeconfigOf(port),
    heard,
    faults: [],
    named: (resource) => keeper.all(resource).map(({ metadata }) => metadata.name),
    away: (is) => {
      state.away = is;
      if (!is) return;
      server.closeAllConnections();
      for (const socket of attached) socket.destroy();
    },
    mutate: undefined,
    cutAttachAfter: Infinity,
    cutSentAfter: (bytes) => void (state.sent = bytes),
    addPolicy: (policy) => keeper.addPolicy(policy),
    until: (pod, is) => keeper.until(pod, is),
    remove: (pod) => keeper.remove("pods", pod),
    processes: (pod) => keeper.processes(pod),
    evict: (pod, why) => keeper.evict(pod, why),
    noRoom: (message) => void (keeper.noRoom = message),
    place: (pod, message) => keeper.place(pod, message),
    get sandboxes() {
      return state.sandboxes;
    },
    installSandboxes: () => (state.sandboxes ??= new SandboxController(keeper, (pod) => api.mutate?.(pod))),
    installPool: (objects) => {
      api.installSandboxes();
      return (state.pool = new WarmPool(keeper, objects));
    },
    get pool() {
      return state.pool;
    },
    intrude: (pod, script) => keeper.intrude(pod, script),
    clockAhead: 0,
    denied: new Set(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      if (state.sandboxes !== undefined) state.sandboxes.idle = true;
      await keeper[Symbol.asyncDispose]();
    },
  };
  server.on("connection", (socket) => state.away && socket.destroy());
  server.on("request", (request, response) => {
    heard.push(`${request.method} ${request.url}`);
    response.setHeader("date", new Date(Date.now() + api.clockAhead).toUTCString());
    void answer(api, keeper, { request, response }).catch((thrown: unknown) =>
      reply(response, 500, statusOf(500, "InternalError", String(thrown))),
    );
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    heard.push(`${request.method} ${request.url}`);
    attached.add(socket);
    socket.on("close", () => attached.delete(socket));
    void attach(api, keeper, { request, socket, state }).catch(() => socket.destroy());
  });
  return api;
}

interface State {
  away: boolean;
  sent: number;
  sandboxes: SandboxController | undefined;
  pool: WarmPool | undefined;
}

/** A kubeconfig with one context, as `kubectl` reads it. */
const kubeconfigOf = (port: number): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "stub",
    clusters: [
      { name: "stub", cluster: { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true } },
    ],
    users: [{ name: "me", user: { token: "word" } }],
    contexts: [{ name: "stub", context: { cluster: "stub", user: "me", namespace: "team" } }],
  });

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

async function answer(api: FakeApi, keeper: PodKeeper, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  const { method = "GET", url = "/" } = request;
  const fault = api.faults.find(({ fits, times }) => times > 0 && fits.test(`${method} ${url}`));
  if (fault !== undefined) return fail(fault, response);
  const { pathname, searchParams } = new URL(url, "http://x");
  if (pathname === REVIEWS) return review(api, exchange);
  const fixed = fixedAt(api, pathname);
  if (fixed !== undefined) return reply(response, 200, fixed);
  const [, resource, name] = (PLACE.exec(pathname) ?? []) as [string?, ServedResource?, string?];
  if (resource === "pods" || resource === "networkpolicies")
    return object(api, keeper, { ...exchange, resource, name, searchParams });
  return agentSandbox(api, exchange, { resource, name, selector: selectorIn(searchParams) });
}

interface ObjectPath {
  readonly resource: ServedResource | undefined;
  readonly name: string | undefined;
  readonly selector: readonly string[];
}

/** Serves the objects of agent-sandbox's controllers, if installed. */
async function agentSandbox(
  { sandboxes, pool }: FakeApi,
  exchange: Exchange,
  { resource, name, selector }: ObjectPath,
): Promise<void> {
  if (resource === "sandboxes" && sandboxes !== undefined)
    return sandbox(sandboxes, exchange, name, selector);
  if (resource === "sandboxclaims" && pool !== undefined) return claim(pool, exchange, name, selector);
  if (resource === "sandboxwarmpools" && pool !== undefined && name === pool.name)
    return reply(exchange.response, 200, { metadata: { name }, status: pool.status });
  return reply(exchange.response, 404, statusOf(404, "NotFound", "the server could not find it"));
}

interface ObjectRequest extends CreateRequest {
  readonly name: string | undefined;
  readonly searchParams: URLSearchParams;
}

async function object(api: FakeApi, keeper: PodKeeper, asking: ObjectRequest): Promise<void> {
  const { request, response, resource, name, searchParams } = asking;
  const { method } = request;
  if (method === "POST") return make(api, keeper, asking);
  if (name !== undefined) {
    const found = method === "DELETE" ? await keeper.remove(resource, name) : keeper.one(resource, name);
    return found === undefined
      ? reply(response, 404, statusOf(404, "NotFound", `${resource} "${name}" not found`))
      : reply(response, 200, found);
  }
  if (searchParams.get("watch") === "1") return watch(keeper, response, searchParams);
  listed(response, keeper.all(resource), selectorIn(searchParams));
}

/** Fixed answers of the server about itself. */
function fixedAt(api: FakeApi, pathname: string): unknown {
  if (pathname === "/version") return { major: "1", minor: "20", gitVersion: "v1.20.2" };
  if (pathname === "/apis/node.k8s.io/v1/runtimeclasses/gvisor") return { handler: "runsc" };
  if (pathname === POOL_API && api.pool !== undefined)
    return { resources: [{ name: "sandboxclaims", kind: "SandboxClaim" }] };
  if (pathname !== SANDBOX_API || api.sandboxes === undefined) return undefined;
  const of = { namespaced: true, kind: "Sandbox", verbs: [] };
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: "agents.x-k8s.io/v1beta1",
    resources: [
      { name: "sandboxes", singularName: "sandbox", ...of },
      { name: "sandboxes/status", singularName: "", ...of },
    ],
  };
}

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

const selectorIn = (query: URLSearchParams): readonly string[] =>
  (query.get("labelSelector") ?? "").split(",").filter(Boolean);

function listed(response: ServerResponse, all: readonly Labelled[], selector: readonly string[]): void {
  const items = all.filter(({ metadata: { labels = {} } }) =>
    selector.every((one) => labels[one.split("=")[0] ?? ""] === one.split("=")[1]),
  );
  reply(response, 200, { kind: "List", apiVersion: "v1", metadata: {}, items });
}

async function sandbox(
  sandboxes: SandboxController,
  { request, response }: Exchange,
  name: string | undefined,
  selector: readonly string[],
): Promise<void> {
  if (request.method === "POST") {
    const made = JSON.parse(await text(request)) as Sandbox;
    const wrong = unlikeSandbox(made);
    if (wrong.length > 0) return reply(response, 422, statusOf(422, "Invalid", wrong.join("; ")));
    if (sandboxes.one(made.metadata.name) !== undefined)
      return reply(
        response,
        409,
        statusOf(409, "AlreadyExists", `sandboxes "${made.metadata.name}" already exists`),
      );
    return reply(response, 201, sandboxes.make(made));
  }
  if (name === undefined) return listed(response, sandboxes.all(), selector);
  const found = request.method === "DELETE" ? await sandboxes.remove(name) : sandboxes.looked(name);
  return found === undefined
    ? reply(response, 404, statusOf(404, "NotFound", `sandboxes.agents.x-k8s.io "${name}" not found`))
    : reply(response, 200, found);
}

async function claim(
  pool: WarmPool,
  { request, response }: Exchange,
  name: string | undefined,
  selector: readonly string[],
): Promise<void> {
  if (request.method === "POST")
    return reply(response, 201, pool.make(JSON.parse(await text(request)) as Claim));
  if (name === undefined) return listed(response, pool.all(), selector);
  const found = request.method === "DELETE" ? await pool.remove(name) : pool.looked(name);
  return found === undefined
    ? reply(response, 404, statusOf(404, "NotFound", `sandboxclaims "${name}" not found`))
    : reply(response, 200, found);
}

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async function review(api: FakeApi, { request, response }: Exchange): Promise<void> {
  const asked = JSON.parse(await text(request)) as {
    readonly spec: { readonly resourceAttributes: Readonly<Record<string, string>> };
  };
  const { verb = "", resource = "", subresource } = asked.spec.resourceAttributes;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  reply(response, 201, { ...asked, status: { allowed: !api.denied.has(`${verb} ${what}`) } });
}

function fail(fault: Fault, response: ServerResponse): void {
  fault.times -= 1;
  if (fault.streamed !== true) return reply(response, fault.status, fault.body);
  response.writeHead(200);
  response.end(`${JSON.stringify(fault.body)}\n`);
}

interface CreateRequest extends Exchange {
  readonly resource: Resource;
}

async function make(
  api: FakeApi,
  keeper: PodKeeper,
  { request, response, resource }: CreateRequest,
): Promise<void> {
  const made = JSON.parse(await text(request)) as Pod | Policy;
  const { name } = made.metadata;
  if (keeper.one(resource, name) !== undefined)
    return reply(response, 409, statusOf(409, "AlreadyExists", `${resource} "${name}" already exists`));
  if (resource === "networkpolicies") return reply(response, 201, await keeper.addPolicy(made as Policy));
  api.mutate?.(made as Pod);
  return reply(response, 201, keeper.addPod(made as Pod));
}

function watch(keeper: PodKeeper, response: ServerResponse, query: URLSearchParams): void {
  const name = /metadata\.name=(.+)/.exec(query.get("fieldSelector") ?? "")?.[1];
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  const stop = keeper.follow(Number(query.get("resourceVersion") ?? 0), (event) => {
    if (name === undefined || event.object.metadata.name === name)
      response.write(`${JSON.stringify(event)}\n`);
  });
  response.on("close", stop);
}

interface Attaching {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** How many more bytes all connections together may send. */
  readonly state: { sent: number };
}

/** Attaches as the kubelet of 1.20 does: protocol v4, streams marked by a first byte, and a status at the end. */
async function attach(api: FakeApi, keeper: PodKeeper, { request, socket, state }: Attaching): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://x");
  const [, , name = ""] = PLACE.exec(pathname) ?? [];
  const inner = await keeper.attach(name, searchParams.get("container") ?? "");
  let left = api.cutAttachAfter;
  api.cutAttachAfter = Infinity;
  const served = serveSocket(request, socket, "v4.channel.k8s.io", {
    onMessage: async (message) => {
      left -= message.length;
      if (left < 0) return served.cut();
      if (message[0] === 0 && !inner.write(message.subarray(1)) && !inner.destroyed)
        await once(inner, "drain");
    },
    onEnd: () => inner.destroy(),
  });
  for await (const { source, bytes } of demultiplexed(inner)) {
    state.sent -= bytes.length;
    if (state.sent < 0) return served.cut();
    if (!served.send(Buffer.concat([Buffer.from([source]), bytes])) && !socket.destroyed)
      await once(socket, "drain");
  }
  served.send(
    Buffer.concat([Buffer.from([3]), Buffer.from(JSON.stringify({ metadata: {}, status: "Success" }))]),
  );
  served.close();
}

async function* demultiplexed(
  stream: Duplex,
): AsyncGenerator<{ readonly source: number; readonly bytes: Buffer }> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 8 && rest.length >= 8 + rest.readUInt32BE(4)) {
      const end = 8 + rest.readUInt32BE(4);
      yield { source: rest.readUInt8(0), bytes: rest.subarray(8, end) };
      rest = rest.subarray(end);
    }
  }
}
