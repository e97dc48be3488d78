/** A value for `Idempotency-Key`. `crypto.randomUUID` exists only on secure pages. */
export const newOperationId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
