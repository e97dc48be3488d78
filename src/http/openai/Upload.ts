import { Effect, Option, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { Files } from "../../artifacts/files/Files.ts"
import type { Described, FileRow } from "../../artifacts/files/Files.ts"
import { boundaryOf, notAForm } from "../../domain/forms/FormHead.ts"
import { withoutMark } from "../../domain/json/JsonDocument.ts"
import {
  fileBytesMax,
  fileNameCharactersMax,
  fileSecondsMax,
  fileSecondsMin,
  uploadFieldsBytesMax,
  uploadsAtOnce
} from "../../domain/limits/FileLimits.ts"
import { invalid, Problem, problem } from "../../domain/Problem.ts"
import type { FieldFault, StoreUnavailable } from "../../domain/Problem.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import type { AdmittedCaller } from "../server/access/Authentication.ts"
import { arriving, cutOffOnError } from "../server/bodies/ArrivingBody.ts"
import { isCompressed } from "../server/bodies/JsonBody.ts"
import { UploadParser } from "./UploadParser.ts"

/** Stores the file of a form as it arrives, so that it is never in memory as a whole. docs/reference/files.md */
export const makeUpload = Effect.gen(function* () {
  const files = yield* Files
  const places = new FairShares(uploadsAtOnce)

  const store = Effect.fnUntraced(function* ({
    mayStill,
    principal: { userId }
  }: AdmittedCaller): Effect.fn.Return<
    FileRow,
    Problem | StoreUnavailable,
    HttpServerRequest.HttpServerRequest
  > {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { headers } = request
    const contentType = headers["content-type"] ?? ""
    if (!/^multipart\/form-data\s*;/iu.test(contentType) || isCompressed(headers))
      return yield* notForm
    const boundary = boundaryOf(contentType)
    if (boundary === undefined) return yield* problem(2002, notAForm)
    const announced = Number(headers["content-length"] ?? 0)
    if (announced > fileBytesMax + uploadFieldsBytesMax) return yield* tooLarge
    // The least that the file can have: the quota does not count the form around it
    yield* files.admit(userId, Math.max(1, announced - uploadFieldsBytesMax))
    const form = new UploadParser(boundary)
    let size = 0
    const file = arriving(request, fileBytesMax + uploadFieldsBytesMax, userId).pipe(
      Stream.mapEffect((chunk) => {
        const found = form.push(chunk)
        return typeof found === "string" ? problem(2002, found) : Effect.succeed(found)
      }),
      skipMark,
      Stream.mapEffect((found) => {
        size += found.length
        return size > fileBytesMax ? Effect.fail(tooLarge) : Effect.succeed(found)
      }),
      Stream.filter(({ length }) => length > 0)
    )
    return yield* files
      .upload(
        userId,
        file,
        Effect.andThen(
          mayStill,
          Effect.suspend(() => describe(form, size))
        )
      )
      .pipe(cutOffOnError(request))
  })

  return (caller: AdmittedCaller) =>
    Effect.catchTag(places.within(caller.principal.userId)(store(caller)), "ShareExhausted", () =>
      Effect.fail(tooManyUploads)
    )
})

/** The same bytes without a byte order mark, which is skipped before every JSON. docs/reference/files.md#uploads */
const skipMark = <E>(bytes: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  Stream.suspend(() => {
    let first: Uint8Array | undefined = new Uint8Array()
    const push = (chunk: Uint8Array): Uint8Array => {
      if (first === undefined) return chunk
      const all: Uint8Array = first.length === 0 ? chunk : Buffer.concat([first, chunk])
      first = all.length < markBytes ? all : undefined
      return first === undefined ? withoutMark(all) : new Uint8Array()
    }
    return Stream.concat(
      Stream.map(bytes, push),
      Stream.suspend(() => Stream.succeed(first ?? new Uint8Array()))
    )
  })

const markBytes = 3

const notForm = problem(2003, "Send the file as plain multipart/form-data")
const tooLarge = problem(2004, `The file is larger than ${fileBytesMax} bytes`)

const tooManyUploads = new Problem({
  code: 1202,
  detail: "Too many uploads of this user are waiting: send one after another",
  retryAfterSeconds: 5
})

const wholeNumber = /^\d{1,8}$/u

/** Reads the form's fields about its file, once it has arrived. Fails with 2001. */
const describe = (form: UploadParser, size: number): Effect.Effect<Described, Problem> => {
  const fault = form.end()
  if (fault !== undefined) return Effect.fail(problem(2002, fault))
  const { fields, filename } = form
  const known = new Set(["purpose", "expires_after[anchor]", "expires_after[seconds]"])
  const faults: Array<FieldFault> = [...fields.keys()]
    .filter((name) => !known.has(name))
    .map((name) => ({
      pointer: `#/${encodeURIComponent(name.slice(0, 60))}`,
      detail: "Unknown field"
    }))
  const refuse = (pointer: string, detail: string) => faults.push({ pointer, detail })
  if (fields.get("purpose") !== "batch") {
    refuse("#/purpose", "Expected batch, the only purpose that is offered")
  }
  if (filename === undefined) refuse("#/file", "Expected a file")
  else if (size === 0) refuse("#/file", "Expected a file that is not empty")
  const seconds = secondsOf(fields)
  if (Option.isNone(seconds)) {
    refuse(
      "#/expires_after",
      `Expected the anchor created_at, and from ${fileSecondsMin} to ${fileSecondsMax} seconds`
    )
  }
  const [first, ...rest] = faults
  if (first !== undefined) return Effect.fail(invalid([first, ...rest]))
  return Effect.succeed({
    filename: nameOf(filename ?? ""),
    seconds: Option.getOrElse(seconds, () => fileSecondsMax)
  })
}

const secondsOf = (fields: ReadonlyMap<string, string>): Option.Option<number> => {
  const [anchor, seconds] = [
    fields.get("expires_after[anchor]"),
    fields.get("expires_after[seconds]")
  ]
  if (anchor === undefined && seconds === undefined) return Option.some(fileSecondsMax)
  const number = wholeNumber.test(seconds ?? "") ? Number(seconds) : 0
  const isWithin = number >= fileSecondsMin && number <= fileSecondsMax
  return anchor === "created_at" && isWithin ? Option.some(number) : Option.none()
}

/** The file name without its folder, and without characters that the store cannot contain. */
const nameOf = (filename: string): string => {
  const [name = ""] = filename.split(/[/\\]/u).slice(-1)
  const plain = [...name.toWellFormed().replaceAll(/\p{Cc}/gu, "")]
  return plain.slice(0, fileNameCharactersMax).join("") || "batch.jsonl"
}
