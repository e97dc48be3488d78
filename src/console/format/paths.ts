/** A name may contain slashes. */
const inPath = encodeURIComponent

interface Named {
  readonly vendor: string
  readonly model: string
}

/** The page of a model. */
export const modelPath = ({ model, vendor }: Named): string =>
  `/models/${inPath(vendor)}/${inPath(model)}`

/** The route on which a task was created. */
export const taskPath = ({ action, model, vendor }: Named & { readonly action: string }): string =>
  `/vendors/${inPath(vendor)}/v1/${inPath(model)}/${action}`
