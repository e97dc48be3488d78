import type { Vendor } from "../Vendors.ts"
import { namesIn } from "./JobProtocol.ts"

type Jobs = NonNullable<Vendor["jobs"]>

/** A place below `jobs`, and what is wrong there. */
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

type Submit = Pick<Jobs["submit"], "form" | "json"> & { readonly path?: string | undefined }

/** Of the vendor's own submit, and of that of a model over it (`base`). */
const submitFaultsAt = (
  at: ReadonlyArray<PropertyKey>,
  own: Submit,
  base?: Submit
): ReadonlyArray<Fault> => {
  const isModel = base !== undefined
  const contents = [own.json, own.form, base?.json, base?.form]
  const faults: ReadonlyArray<readonly [boolean, string, string]> = [
    [own.path !== undefined && isWholeUrl(own.path), "path", "Expected a path after the base"],
    [isModel && (own.path ?? base.path) === undefined, "path", noneOfVendor],
    [own.json !== undefined && own.form !== undefined, "form", "Expected json or form, not both"],
    [isModel && contents.every((it) => it === undefined), "json", noneOfVendor],
    [JSON.stringify(own.json ?? null).includes('"$file"'), "json", "Only a form has files"]
  ]
  return [
    ...pathFaults(own.path, ["model"], [...at, "path"]),
    ...faults.flatMap(([isFault, name, detail]): ReadonlyArray<Fault> =>
      isFault ? [[[...at, name], detail]] : []
    )
  ]
}

const noneOfVendor = "Required here, because the vendor's submit has none"

const submitFaults = ({ models, submit }: Jobs): ReadonlyArray<Fault> => [
  ...submitFaultsAt(["submit"], submit),
  ...models.flatMap((model, index) =>
    submitFaultsAt(["models", index, "submit"], model.submit ?? {}, submit)
  )
]

const modelFaults = ({ models }: Jobs): ReadonlyArray<Fault> =>
  models.flatMap(({ action, body, media = {}, model }, index): ReadonlyArray<Fault> => {
    const { properties } = body
    const fields = typeof properties === "object" && properties !== null ? properties : {}
    const same = models.findIndex((it) => it.model === model && it.action === action)
    return [
      ...(same === index
        ? []
        : [[["models", index, "model"], `Two models have the name ${model}`] as const]),
      ...Object.keys(media)
        .filter((field) => !Object.hasOwn(fields, field))
        .map((field): Fault => [["models", index, "media", field], "The body has no such field"])
    ]
  })

const stateFaults = ({ state }: Jobs): ReadonlyArray<Fault> =>
  (["done", "failed"] as const).flatMap((name) =>
    state[name].flatMap((word, index): ReadonlyArray<Fault> => {
      const others = name === "done" ? state.running : [...state.running, ...state.done]
      return others.includes(word)
        ? [[["state", name, index], `The state ${word} has another meaning, too`]]
        : []
    })
  )

/** Rules of a description that its schema cannot express, each at its place. */
export const jobFaults = (jobs: Jobs): ReadonlyArray<Fault> => {
  const { cancel, failures, list, poll, results, submit } = jobs
  const known = [...Object.keys(submit.handle), "model"]
  return [
    ...(Object.hasOwn(submit.handle, "id")
      ? []
      : [[["submit", "handle", "id"], "Required, but missing"] as const]),
    ...(Object.hasOwn(submit.handle, "model")
      ? [[["submit", "handle", "model"], "The model has this name"] as const]
      : []),
    ...submitFaults(jobs),
    ...pathFaults(poll.path, known, ["poll", "path"]),
    ...pathFaults(cancel?.path, known, ["cancel", "path"]),
    ...pathFaults(results.path, known, ["results", "path"]),
    ...pathFaults(list?.path, [], ["list", "path"]),
    ...(results.urls === undefined && results.base64 === undefined
      ? [[["results", "urls"], "Expected urls or base64"] as const]
      : []),
    ...stateFaults(jobs),
    ...failures.flatMap(({ codes, status, when }, index): ReadonlyArray<Fault> =>
      codes === undefined && status === undefined && when === undefined
        ? [[["failures", index], "Expected a status, codes or a condition"]]
        : []
    ),
    ...modelFaults(jobs)
  ]
}
