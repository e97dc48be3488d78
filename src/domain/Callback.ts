/** A vendor's callback about a job, as received. The gateway reads only its signature. ADR 0107. */
export interface InboundCallback {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The bytes that were signed. */
  readonly body: Uint8Array
}
