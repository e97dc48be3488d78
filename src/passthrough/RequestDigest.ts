import { createHash, randomUUID } from "node:crypto"
import type { UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"

/** For a large body only both ends are hashed: hashing all of it would block the event loop. */
const digestBytes = 64 * 1024

/** A repeated request has the same digest. */
export const digestOf =
  ({ body, method, path, query, upload }: UpstreamRequest) =>
  (): string =>
    createHash("sha256")
      // What an upload was is not known any more: each is another
      .update(`${method} ${path}${query} ${upload === undefined ? body.length : randomUUID()}\n`)
      .update(body.subarray(0, digestBytes))
      .update(body.subarray(-digestBytes))
      .digest("base64")
