import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

/**
 * The engine is fetched from npm on first use, at this version, outside the lock file: it brings a hundred packages
 * that nothing else here uses. Their scripts are not run; only the binary for this machine's processor is taken.
 */
const VERSION = "3.22.1";
const ROOT = path.join(import.meta.dirname, "../..");
const FOLDER = path.join(ROOT, "node_modules/.cache", `node-llama-cpp-${VERSION}`);

const BINARIES: Readonly<Record<string, string>> = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "darwin-arm64": "mac-arm64-metal",
  "darwin-x64": "mac-x64",
};

/** A token of the model's vocabulary; a number that only the engine creates. */
export type Token = number & { readonly token: never };

/** The part of the package that is used. */
export interface NodeLlamaCpp {
  readonly getLlama: (options: object) => Promise<Llama>;
  readonly LlamaGrammarEvaluationState: new (options: object) => object;
}

export interface Llama {
  readonly loadModel: (options: { readonly modelPath: string }) => Promise<LlamaModel>;
  readonly createGrammar: (options: { readonly grammar: string }) => Promise<object>;
  readonly dispose: () => Promise<void>;
}

export interface LlamaModel {
  readonly trainContextSize: number;
  readonly tokens: { readonly bosString: string | null; readonly eosString: string | null };
  readonly fileInfo: {
    readonly metadata: {
      readonly general: { readonly architecture: string; readonly name?: string };
      readonly tokenizer?: { readonly chat_template?: string };
    };
    readonly tensorInfo?: readonly { readonly dimensions: readonly (number | bigint)[] }[];
  };
  readonly tokenize: (text: string, specialTokens: boolean) => Token[];
  readonly detokenize: (tokens: readonly Token[], specialTokens: boolean) => string;
  readonly createContext: (options: object) => Promise<LlamaContext>;
  readonly createEmbeddingContext: (options: object) => Promise<LlamaEmbeddings>;
}

export interface LlamaContext {
  readonly getSequence: () => LlamaSequence;
  readonly dispose: () => Promise<void>;
}

export interface LlamaSequence {
  readonly nextTokenIndex: number;
  readonly adaptStateToTokens: (tokens: Token[], allowShift: boolean) => Promise<void>;
  readonly evaluateWithoutGeneratingNewTokens: (tokens: Token[]) => Promise<void>;
  readonly evaluate: (tokens: Token[], options: object) => AsyncGenerator<Token, void>;
}

interface LlamaEmbeddings {
  readonly getEmbeddingFor: (tokens: Token[]) => Promise<{ readonly vector: readonly number[] }>;
  readonly dispose: () => Promise<void>;
}

/** Renders the template that a model was trained with. */
export interface ChatTemplate {
  readonly render: (values: object) => string;
}

interface Engine {
  readonly llama: NodeLlamaCpp;
  readonly template: (text: string) => ChatTemplate;
}

export async function loadEngine(): Promise<Engine> {
  const at = (name: string): string => path.join(FOLDER, "node_modules", name, "dist/index.js");
  if (!existsSync(path.join(FOLDER, "whole"))) await install();
  const llama = (await import(pathToFileURL(at("node-llama-cpp")).href)) as NodeLlamaCpp;
  const { Template } = (await import(pathToFileURL(at("@huggingface/jinja")).href)) as {
    readonly Template: new (text: string) => ChatTemplate;
  };
  return { llama, template: (text) => new Template(text) };
}

async function install(): Promise<void> {
  const binary = BINARIES[`${process.platform}-${process.arch}`];
  if (binary === undefined)
    throw new Error(`node-llama-cpp has no binary for ${process.platform} ${process.arch}`);
  await mkdir(FOLDER, { recursive: true });
  await writeFile(path.join(FOLDER, "package.json"), '{ "private": true }\n');
  const npm = path.join(ROOT, "node_modules/npm/bin/npm-cli.js");
  const names = [`node-llama-cpp@${VERSION}`, `@node-llama-cpp/${binary}@${VERSION}`];
  const quiet = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"];
  await promisify(execFile)(process.execPath, [npm, "install", ...quiet, "--prefix", FOLDER, ...names], {
    cwd: FOLDER,
  });
  await writeFile(path.join(FOLDER, "whole"), "");
}
