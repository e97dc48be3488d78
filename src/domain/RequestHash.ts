/** Identifies the request behind an idempotency key. docs/reference/tasks.md#idempotency */
export interface RequestHash {
  /** Of the method, the path and the parsed body. It is stored. */
  readonly requestHash: Uint8Array
}

/** The stored hash is that of this request. */
export const isRepeat = (stored: Uint8Array, { requestHash }: RequestHash): boolean =>
  Buffer.compare(stored, requestHash) === 0
