/** A UUID. `crypto.randomUUID` exists only on secure pages. RFC 9562, 5.4 */
export const newIdempotencyKey = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return [...bytes]
    .map(
      (byte, at) => `${[4, 6, 8, 10].includes(at) ? "-" : ""}${byte.toString(16).padStart(2, "0")}`
    )
    .join("")
}

/** POSTs whose idempotency key the gateway stores: creates of tasks, in any format, and the management API. */
const keptPaths =
  /^\/(?:manage\/v1\/.+|vendors\/[^/]+\/v1\/[^/]+\/(?:generation|edit)|v1\/(?:images\/(?:generations|edits)|videos))$/u

/**
 * Whether the gateway stores idempotency keys for this path. docs/reference/tasks.md#idempotency,
 * docs/reference/http.md#idempotency-of-management-requests
 */
export const keepsKeys = (path: string): boolean => keptPaths.test(path.replace(/\?.*$/su, ""))
