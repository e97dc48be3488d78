import { api, dataOf } from "../../api/client.ts"
import { pageAfter, readAll } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { SelectField } from "../../components/Field.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { dayOf } from "../../format/time.ts"
import { location, setQuery, viewedUser } from "../../router/location.ts"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import type { AnyModel } from "../models/price.tsx"
import { ChatPlayground } from "./ChatPlayground.tsx"
import { MediaPlayground } from "./MediaPlayground.tsx"

const nameOf = ({ model, vendor }: AnyModel): string => `${vendor}/${model}`

/** What is sold on this day. */
const isSold = ({ valid_from: from, valid_until: until }: AnyModel, day: string): boolean =>
  (from === null || from <= day) && (until === null || day < until)

const readModels = async (): Promise<ReadonlyArray<AnyModel>> => {
  const all = await readAll((cursor) =>
    dataOf(api.GET("/manage/v1/models", { params: { query: pageAfter(100, cursor) } }))
  )
  const today = dayOf(new Date())
  const byName = new Map<string, AnyModel>()
  for (const model of all) {
    if (isSold(model, today) && !byName.has(nameOf(model))) byName.set(nameOf(model), model)
  }
  return [...byName.values()]
}

/** `/playground?model=vendor/model`: a request is made, priced, run and watched, and shown as a program. */
export default function PlaygroundPage() {
  const models = useResource("models sold", readModels)
  const name = location.value.query.get("model") ?? ""
  return (
    <>
      <PageHeader title={words.title} />
      {viewedUser() !== undefined && <p class="banner">{words.readOnly}</p>}
      <Loaded of={models}>
        {(all) => (
          <>
            <Picker models={all} name={name} />
            <Chosen models={all} name={name} />
          </>
        )}
      </Loaded>
    </>
  )
}

interface PickProps {
  readonly models: ReadonlyArray<AnyModel>
  readonly name: string
}

const kindOf = (model: AnyModel) => (model.type === "token" ? "token" : model.result)
const kinds = ["images", "videos", "audios", "token"] as const

const Picker = ({ models, name }: PickProps) => (
  <SelectField
    label={words.model}
    value={models.some((it) => nameOf(it) === name) ? name : ""}
    options={[
      ["", words.choose],
      ...kinds.flatMap((kind) =>
        models
          .filter((it) => kindOf(it) === kind)
          .map((it) => [nameOf(it), `${words.kinds[kind]}: ${nameOf(it)}`] as const)
      )
    ]}
    onText={(next) => setQuery({ model: next })}
  />
)

const Chosen = ({ models, name }: PickProps) => {
  if (name === "") return <Empty title={words.noModel} />
  const model = models.find((it) => nameOf(it) === name)
  if (model === undefined) return <Empty title={words.unknown(name)} />
  return model.type === "token" ? (
    <ChatPlayground key={name} model={model} />
  ) : (
    <MediaPlayground key={name} model={model} />
  )
}
