/** A vendor's call about a job, as it came. Only its signature is looked at. ADR 0107. */
export interface InboundCallback {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The bytes that were signed. */
  readonly body: Uint8Array
}
