import type { Option, Redacted } from "effect"

/** A bucket with its credentials: `ARTIFACT_STORE=s3://bucket/prefix` and the usual AWS variables. */
export interface BucketAccess {
  readonly bucket: string
  /** Without leading or trailing slashes; may be empty. */
  readonly prefix: string
  readonly region: string
  /** An S3-compatible service other than AWS, addressed by path. */
  readonly endpoint: Option.Option<string>
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken: Option.Option<Redacted.Redacted>
}
