/** The value of an `Idempotency-Key`. `crypto.randomUUID` exists on secure pages alone. */
export const newOperationId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
