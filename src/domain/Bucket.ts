import type { Option, Redacted } from "effect"

/** A bucket with its credentials: `ARTIFACT_STORE=s3://bucket/prefix` and the usual AWS variables. */
export interface BucketAccess {
  readonly bucket: string
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string
  readonly region: string
  /** Another service than AWS that speaks S3; addressed by path. */
  readonly endpoint: Option.Option<string>
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken: Option.Option<Redacted.Redacted>
}
