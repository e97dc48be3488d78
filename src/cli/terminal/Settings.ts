import { Flag, GlobalFlag } from "effect/cli"

/** Prints one JSON document to stdout, or one line per event. docs/cli.md#json */
export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON document on stdout, or one line per event of a stream"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  )
})

/** The service's address; default: `GATEWAY_URL`. */
export const Url = GlobalFlag.Setting("url")({
  flag: Flag.String("url").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("Address of the service; better set GATEWAY_URL"),
    Flag.optional
  )
})

/** A user's API key; default: `GATEWAY_API_KEY`. */
export const Key = GlobalFlag.Setting("key")({
  flag: Flag.Redacted("key").pipe(
    Flag.withMetavar("KEY"),
    Flag.withDescription(
      "A user's API key; GATEWAY_API_KEY is safer, because other users cannot see it"
    ),
    Flag.optional
  )
})

/** The operator's token; default: `ADMIN_TOKEN`. */
export const Token = GlobalFlag.Setting("token")({
  flag: Flag.Redacted("token").pipe(
    Flag.withMetavar("TOKEN"),
    Flag.withDescription(
      "The operator's token; ADMIN_TOKEN is safer, because other users cannot see it"
    ),
    Flag.optional
  )
})

export const settings = [Json, Url, Key, Token] as const
