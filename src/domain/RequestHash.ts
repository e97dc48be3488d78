/** Identifies the request behind an idempotency key. docs/reference/tasks.md#idempotency */
export interface RequestHash {
  /** Of the method, the path and the parsed body. It is stored. */
  readonly requestHash: Uint8Array
  /** Of the body's bytes, as the release before stored it. */
  readonly bytesHash: Uint8Array
}

/** The stored hash is that of this request. */
export const isRepeat = (stored: Uint8Array, { bytesHash, requestHash }: RequestHash): boolean =>
  Buffer.compare(stored, requestHash) === 0 || Buffer.compare(stored, bytesHash) === 0
