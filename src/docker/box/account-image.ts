import { Readable } from "node:stream";
import type { BoxPlan } from "../container-spec.ts";
import type { Engine } from "../engine.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";
import { ACCOUNT_REPOSITORY, shortHash } from "../images/image-inputs.ts";
import { tarOf } from "../../boxes/layers/workspace-archive.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { accountTexts, listsIn } from "./account-lists.ts";

/** A new number for a new form of the content. */
const FORM = 1;

export interface AccountImage {
  /** The image's id. */
  readonly image: string;
  readonly user: BoxPlan["user"];
  /** The labels of the container that the image is made from, so that a leftover container is found again. */
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * The id of an image that is the given one with the box's user in its lists: for an engine that cannot read a file of
 * this machine. Made once for each image, user and group, from a container that never starts; it is removed with our
 * other images.
 */
export async function imageWithAccount(engine: Engine, wanted: AccountImage): Promise<string> {
  const { image, user, labels } = wanted;
  const of = shortHash(JSON.stringify([FORM, image, user.uid, user.gid]));
  try {
    const there = await idOf(engine, of);
    if (there !== undefined) return there;
    await using unstarted = await unstartedContainer(engine, { image, labels });
    const { container } = unstarted;
    const { passwd, group } = accountTexts(await listsIn(container), user);
    const archive = tarOf({ "etc/passwd": passwd, "etc/group": group });
    await container.putArchive(Readable.from([archive], { objectMode: false }), { path: "/" });
    const { Id } = (await container.commit({ repo: ACCOUNT_REPOSITORY, tag: of })) as { readonly Id: string };
    // If two were made at the same time, the later one has the name.
    return (await idOf(engine, of)) ?? Id;
  } catch (thrown) {
    throw engineFailure("giving the box's user a name", thrown);
  }
}

async function idOf({ api }: Engine, tag: string): Promise<string | undefined> {
  try {
    return (await api.getImage(`${ACCOUNT_REPOSITORY}:${tag}`).inspect()).Id;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}
