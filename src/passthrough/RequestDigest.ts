import { createHash, randomUUID } from "node:crypto"
import type { UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"

/** For a large body only both ends are hashed, because hashing all of it would block the event loop. */
const digestBytes = 64 * 1024

/** A digest that is the same for a repeated request. */
export const digestOf =
  ({ body, method, path, query, upload }: UpstreamRequest) =>
  (): string =>
    createHash("sha256")
      // An upload can no longer be read, so each one counts as a different request
      .update(`${method} ${path}${query} ${upload === undefined ? body.length : randomUUID()}\n`)
      .update(body.subarray(0, digestBytes))
      .update(body.subarray(-digestBytes))
      .digest("base64")
