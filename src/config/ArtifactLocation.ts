import { Config, Effect, Option } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import { fault, read, readSecret } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"

/** Where media are stored: a folder, or a bucket with the usual AWS variables. */
export type ArtifactLocation =
  | { readonly _tag: "Directory"; readonly directory: string }
  | ({ readonly _tag: "S3" } & BucketAccess)

/** Reads `ARTIFACT_STORE`. docs/reference/configuration.md#artifact-store */
export const artifactLocation = (dataDir: string): Effect.Effect<ArtifactLocation, ConfigFault> =>
  Effect.gen(function* () {
    const remedy = "set a folder, or s3://bucket/prefix"
    const place = yield* read(
      "ARTIFACT_STORE",
      Config.NonEmptyString("ARTIFACT_STORE").pipe(Config.withDefault(`${dataDir}/artifacts`)),
      remedy
    )
    if (!/^[a-z][a-z0-9+.-]+:/iu.test(place)) return { _tag: "Directory", directory: place }
    const [, bucket = "", prefix = ""] =
      /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w!.*'()/-]*))?$/iu.exec(place) ?? []
    if (bucket === "") return yield* fault("ARTIFACT_STORE", `"${place}" is not a bucket`, remedy)
    return { _tag: "S3", bucket, prefix: prefix.replaceAll(/^\/+|\/+$/gu, ""), ...(yield* aws) }
  })

/** The AWS variables. If a setting has several names, the first variable that is set is used. */
const aws = Effect.gen(function* () {
  const text = (name: string) =>
    read(name, Config.option(Config.NonEmptyString(name)), "set a text")
  const required = "is required with ARTIFACT_STORE=s3://…"
  const accessKeyId = yield* text("AWS_ACCESS_KEY_ID")
  const secretAccessKey = yield* readSecret("AWS_SECRET_ACCESS_KEY", "set the key's secret")
  if (Option.isNone(accessKeyId)) {
    return yield* fault("AWS_ACCESS_KEY_ID", required, "set the id of an access key")
  }
  if (Option.isNone(secretAccessKey)) {
    return yield* fault("AWS_SECRET_ACCESS_KEY", required, "set the key's secret")
  }
  const region = yield* text("AWS_REGION")
  const fallback = yield* text("AWS_DEFAULT_REGION")
  const url = (name: string) =>
    read(
      name,
      Config.option(Config.URL(name)),
      "set an absolute URL, such as http://localhost:9000"
    )
  const own = yield* url("AWS_ENDPOINT_URL_S3")
  const general = yield* url("AWS_ENDPOINT_URL")
  return {
    accessKeyId: accessKeyId.value,
    secretAccessKey: secretAccessKey.value,
    sessionToken: yield* readSecret("AWS_SESSION_TOKEN", "set the session's token"),
    region: Option.getOrElse(
      Option.orElse(region, () => fallback),
      () => defaultRegion
    ),
    endpoint: Option.map(
      Option.orElse(own, () => general),
      (it) => it.href
    )
  }
})

const defaultRegion = "us-east-1"
