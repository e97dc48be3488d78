/** Identifies the request that used an idempotency key. docs/reference/tasks.md#idempotency */
export interface RequestHash {
  /** SHA-256 of the method, the path and the parsed body. */
  readonly requestHash: Uint8Array
}

/** Whether the stored hash is that of this request. */
export const isRepeat = (stored: Uint8Array, { requestHash }: RequestHash): boolean =>
  Buffer.compare(stored, requestHash) === 0
