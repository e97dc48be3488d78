import { api } from "./client.ts"
import { useResource } from "./resource.ts"
import type { Page, Schemas } from "./schema.ts"
import { pageAfter } from "./searchOn.ts"
import type { PageQuery } from "./searchOn.ts"

const listMax = 100

/** Reads all pages of a short list, such as keys or models. */
export const readAll = async <T>(
  load: (query: PageQuery) => Promise<Page<T>>,
  cursor?: string
): Promise<ReadonlyArray<T>> => {
  const page = await load(pageAfter(listMax, cursor))
  return page.next_cursor === null
    ? page.data
    : [...page.data, ...(await readAll(load, page.next_cursor))]
}

/** Read once and shared by all pages, because the catalog seldom changes. */
let models: Promise<ReadonlyArray<Schemas["Model"] | Schemas["TokenModel"]>> | undefined

export const readModels = () => {
  models ??= readAll<Schemas["Model"] | Schemas["TokenModel"]>((query) =>
    api.GET("/manage/v1/models", { query })
  ).catch((cause: unknown) => {
    models = undefined
    throw cause
  })
  return models
}

type Options = ReadonlyArray<readonly [value: string, label: string]>

/** The models and vendors to choose from. */
export const useModelNames = (): { readonly models: Options; readonly vendors: Options } => {
  const { data = [] } = useResource("model names", readModels)
  const optionsOf = (names: ReadonlyArray<string>): Options =>
    [...new Set(names)].sort().map((it) => [it, it])
  return {
    models: optionsOf(data.map(({ model }) => model)),
    vendors: optionsOf(data.map(({ vendor }) => vendor))
  }
}

/** The user's keys by id, for showing their names. Empty when all users are shown. */
export const useKeys = (user: string | undefined): ReadonlyMap<string, Schemas["ApiKey"]> => {
  const keys = useResource(`keys ${user}`, async () =>
    user === undefined ? [] : await readAll((query) => api.GET("/manage/v1/api-keys", { query }))
  )
  return new Map(keys.data?.map((key) => [key.id, key]))
}

/** The webhook endpoints of the user. */
export const readEndpoints = () =>
  readAll((query) => api.GET("/manage/v1/webhook-endpoints", { query }))
