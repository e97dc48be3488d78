import type { Vendor } from "../Vendors.ts"
import { namesIn } from "./JobProtocol.ts"
import type { OwnResults } from "./JobProtocol.ts"

type Jobs = NonNullable<Vendor["jobs"]>

/** A place below `jobs`, and its fault. */
type Fault = readonly [path: ReadonlyArray<PropertyKey>, detail: string]

const isWholeUrl = (path: string): boolean => path.startsWith("{")

const pathFaults = (
  path: string | undefined,
  known: ReadonlyArray<string>,
  at: ReadonlyArray<PropertyKey>
): ReadonlyArray<Fault> =>
  namesIn(path ?? "")
    .filter((name) => !known.includes(name))
    .map((name) => [at, `There is no ${name}: expected ${known.map((it) => `{${it}}`).join(", ")}`])

type Submit = Pick<Jobs["submit"], "form" | "forms" | "json" | "results"> & {
  readonly path?: string | undefined
}

/** Requests that the vendor does not name: each has a path after the base. */
const ownPathFaults = (
  path: string | undefined,
  known: ReadonlyArray<string>,
  at: ReadonlyArray<PropertyKey>
): ReadonlyArray<Fault> =>
  path !== undefined && isWholeUrl(path)
    ? [[at, "Expected a path after the base"]]
    : pathFaults(path, known, at)

/** The faults of the vendor's own submit, or of a model's submit that overrides parts of it (`base`). */
const submitFaultsAt = (
  at: ReadonlyArray<PropertyKey>,
  own: Submit,
  base?: Submit
): ReadonlyArray<Fault> => {
  const isModel = base !== undefined
  const contents = [own.json, own.form, base?.json, base?.form]
  const faults: ReadonlyArray<readonly [boolean, string, string]> = [
    [isModel && (own.path ?? base.path ?? base.forms) === undefined, "path", noneOfVendor],
    [own.json !== undefined && own.form !== undefined, "form", "Expected json or form, not both"],
    [isModel && contents.every((it) => it === undefined), "json", noneOfVendor],
    [JSON.stringify(own.json ?? null).includes('"$file"'), "json", "Only a form has files"]
  ]
  return [
    ...ownPathFaults(own.path, ["model"], [...at, "path"]),
    ...placeFaults([...at, "results"], own.results),
    ...fileFaults([...at, "form"], own.form),
    ...faults.flatMap(([isFault, name, detail]): ReadonlyArray<Fault> =>
      isFault ? [[[...at, name], detail]] : []
    )
  ]
}

/** A part of a form that repeats a file would multiply the size of a request. */
const fileFaults = (
  at: ReadonlyArray<PropertyKey>,
  form: Submit["form"] = {}
): ReadonlyArray<Fault> => {
  const files = Object.entries(form).flatMap(([name, template]) => {
    const text = JSON.stringify(template)
    return text.startsWith('{"$file"') ? [{ name, text }] : []
  })
  return files
    .filter(({ text }, index) => files.findIndex((it) => it.text === text) !== index)
    .map(({ name }): Fault => [[...at, name], "Another part of the form has this file"])
}

const noneOfVendor = "Required here, because the vendor's submit has none"

const submitFaults = ({ models, submit }: Jobs): ReadonlyArray<Fault> => [
  ...submitFaultsAt(["submit"], submit),
  ...ownPathFaults(submit.uploads?.path, [], ["submit", "uploads", "path"]),
  ...(submit.forms ?? []).flatMap(({ model, path }, index) =>
    ownPathFaults(path, ["model", ...namesIn(model)], ["submit", "forms", index, "path"])
  ),
  ...models.flatMap((model, index) =>
    submitFaultsAt(["models", index, "submit"], model.submit ?? {}, submit)
  )
]

/** The faults of the media fields of one described body. */
export const mediaFaults = ({
  body,
  media = {}
}: Pick<Jobs["models"][number], "body" | "media">): ReadonlyArray<Fault> => {
  const { properties } = body
  const fields = typeof properties === "object" && properties !== null ? properties : {}
  return Object.keys(media)
    .filter((field) => !Object.hasOwn(fields, field))
    .map((field): Fault => [["media", field], "The body has no such field"])
}

const modelFaults = ({ models }: Jobs): ReadonlyArray<Fault> =>
  models.flatMap((row, index): ReadonlyArray<Fault> => {
    const { action, model } = row
    const same = models.findIndex((it) => it.model === model && it.action === action)
    const ofName: ReadonlyArray<Fault> =
      same === index ? [] : [[["model"], `Two models have the name ${model}`]]
    return [...ofName, ...mediaFaults(row)].map(([at, detail]) => [
      ["models", index, ...at],
      detail
    ])
  })

const stateFaults = ({ state }: Jobs): ReadonlyArray<Fault> =>
  (["done", "failed"] as const).flatMap((name) =>
    (state?.[name] ?? []).flatMap((word, index): ReadonlyArray<Fault> => {
      const { done = [], running = [] } = state ?? {}
      const others = name === "done" ? running : [...running, ...done]
      return others.includes(word)
        ? [[["state", name, index], `The state ${word} already has another meaning`]]
        : []
    })
  )

/**
 * The description must contain everything that polls need, unless the submit responses of all models contain their
 * results.
 */
const pollFaults = (jobs: Jobs): ReadonlyArray<Fault> => {
  const { models, poll, progress, results, state, submit } = jobs
  const isNeeded = models.some(
    (model) => model.submit?.results === undefined && submit.results === undefined
  )
  const parts = [
    [["submit", "handle"], submit.handle],
    [["poll"], poll],
    [["state"], state],
    [["results"], results]
  ] as const
  const isAsked = isNeeded || progress !== undefined || parts.some(([, part]) => part !== undefined)
  return parts.flatMap(([at, part]): ReadonlyArray<Fault> =>
    isAsked && part === undefined ? [[at, "Required, because jobs are polled"]] : []
  )
}

const placeFaults = (
  at: ReadonlyArray<PropertyKey>,
  results: (OwnResults & Pick<NonNullable<Jobs["results"]>, "content">) | undefined
): ReadonlyArray<Fault> => {
  if (results === undefined) return []
  const { base64, content, json, urls, whole } = results
  const hasPaths = [urls, base64, json].some((it) => it !== undefined)
  if (content !== undefined && hasPaths) {
    return [[[...at, "content"], "Expected content, or urls, base64 or json"]]
  }
  return hasPaths || whole !== undefined || content !== undefined
    ? []
    : [[[...at, "urls"], "Expected urls, base64 or json"]]
}

/** If the vendor sends callbacks, its submits must contain the callback URL. */
const callbackFaults = ({ callbacks, models, poll, submit }: Jobs): ReadonlyArray<Fault> => {
  if (callbacks === undefined) return []
  const { parameter, proof } = callbacks
  const templates = JSON.stringify([submit, models.map((model) => model.submit)])
  return [
    ...(poll === undefined
      ? [[["poll"], "Required, because a callback is never trusted"] as const]
      : []),
    ...(parameter === undefined && !templates.includes('"$.callback"')
      ? [[["callbacks", "parameter"], "Expected a parameter, or $.callback in a template"] as const]
      : []),
    ...(proof.scheme === "standard-webhooks"
      ? pathFaults(proof.secret.path, [], ["callbacks", "proof", "secret", "path"])
      : [])
  ]
}

/** The members of every handle. */
const ownMembers: ReadonlySet<string> = new Set([
  "isLabelled",
  "model",
  "output",
  "result",
  "submittedAtMillis"
])

const handleFaults = (handle: NonNullable<Jobs["submit"]["handle"]>): ReadonlyArray<Fault> => [
  ...(typeof handle["id"] === "string"
    ? []
    : [[["submit", "handle", "id"], "Expected the path of the job's id"] as const]),
  ...Object.entries(handle).flatMap(([name, at]): ReadonlyArray<Fault> => {
    const path = ["submit", "handle", name]
    if (ownMembers.has(name)) return [[path, "Every handle has a member of this name"]]
    return typeof at === "string" ? [] : ownPathFaults(at.or, ["id", "model"], [...path, "or"])
  })
]

/** Faults that the schema of a description cannot express, each with its place. */
export const jobFaults = (jobs: Jobs): ReadonlyArray<Fault> => {
  const { cancel, failures, list, poll, results, submit } = jobs
  const { handle = { id: "" } } = submit
  const known = [...Object.keys(handle), "model"]
  return [
    ...pollFaults(jobs),
    ...handleFaults(handle),
    ...submitFaults(jobs),
    ...pathFaults(poll?.path, known, ["poll", "path"]),
    ...pathFaults(cancel?.path, known, ["cancel", "path"]),
    ...pathFaults(results?.path, known, ["results", "path"]),
    ...ownPathFaults(results?.content, known, ["results", "content"]),
    ...pathFaults(list?.path, [], ["list", "path"]),
    ...placeFaults(["results"], results),
    ...callbackFaults(jobs),
    ...stateFaults(jobs),
    ...failures.flatMap(({ codes, status, when }, index): ReadonlyArray<Fault> =>
      codes === undefined && status === undefined && when === undefined
        ? [[["failures", index], "Expected a status, codes or a condition"]]
        : []
    ),
    ...modelFaults(jobs)
  ]
}
