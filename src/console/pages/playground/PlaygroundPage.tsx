import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import { readModels } from "../../api/lists.ts"
import { useChunk, useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Field } from "../../components/form/Field.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { location, setQuery, viewedUser } from "../../router/location.ts"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import { kindOf, kinds, priceText } from "../models/price.tsx"
import type { AnyModel } from "../models/price.tsx"
import { dialectOf } from "./chat.ts"
import { noteModel, recentModels } from "./draft.ts"
import { openLink, restored } from "./runs.ts"

const nameOf = ({ model, vendor }: AnyModel): string => `${vendor}/${model}`

/** Whether the model is on sale today. */
const isSold = ({ valid_from: from, valid_until: until }: AnyModel, day: string): boolean =>
  (from === null || from <= day) && (until === null || day < until)

const readSold = async (): Promise<ReadonlyArray<AnyModel>> => {
  const today = new Date().toISOString().slice(0, 10)
  const byName = new Map<string, AnyModel>()
  for (const model of await readModels()) {
    if (isSold(model, today) && !byName.has(nameOf(model))) byName.set(nameOf(model), model)
  }
  return [...byName.values()]
}

/**
 * `/playground?model=vendor/model&task=id`: composes, prices, runs and follows a request, and shows it as code. Without
 * a model it opens the last one used, or the first of the requested kind.
 */
export default function PlaygroundPage() {
  const models = useResource("models sold", readSold)
  useEffect(openLink, [location.value])
  const { query } = location.value
  const name = query.get("model") ?? ""
  return (
    <>
      <PageHeader />
      {viewedUser() !== undefined && <p class="banner warning">{words.readOnly}</p>}
      <Loaded of={models}>
        {(all) => <Playground models={all} name={name === "" ? defaultOf(all) : name} />}
      </Loaded>
    </>
  )
}

/** A model that needs only a prompt, so that the first run is one click away. */
const isSimple = (model: AnyModel): boolean =>
  model.type === "token"
    ? dialectOf(model.path) !== undefined
    : Object.keys(model.media).length === 0

const defaultOf = (models: ReadonlyArray<AnyModel>): string => {
  const kind = location.value.query.get("kind")
  const asked = models.filter((it) => kind === null || kindOf(it) === kind)
  const recent = recentModels().find((it) => asked.some((model) => nameOf(model) === it))
  const first = kinds.flatMap((it) => asked.filter((one) => kindOf(one) === it && isSimple(one)))[0]
  return recent ?? (first === undefined ? "" : nameOf(first))
}

interface PlaygroundProps {
  readonly models: ReadonlyArray<AnyModel>
  readonly name: string
}

const Playground = ({ models, name }: PlaygroundProps) => {
  const model = models.find((it) => nameOf(it) === name)
  const picker = <Picker models={models} name={model === undefined ? "" : name} />
  useEffect(() => {
    if (model === undefined) return
    noteModel(name)
    // A reload keeps the model, and the address can be shared
    if (location.value.query.get("model") !== name) setQuery({ model: name, kind: "" })
  }, [name, model])
  if (model === undefined) {
    return (
      <>
        {picker}
        <Empty title={name === "" ? words.noModel : words.unknown(name)} />
      </>
    )
  }
  const key = `${name} ${restored.value}`
  return model.type === "token" ? (
    <ChatPart key={key} model={model} picker={picker} />
  ) : (
    <MediaPart key={key} model={model} picker={picker} />
  )
}

interface PartProps<Model> {
  readonly model: Model
  readonly picker: ComponentChildren
}

/** Chats and media have little in common, so the page loads only the part that its model needs. */
const ChatPart = (props: PartProps<Schemas["TokenModel"]>) => {
  const part = useChunk("chat", () => import("./ChatPlayground.tsx"))
  return <Loaded of={part}>{({ ChatPlayground }) => <ChatPlayground {...props} />}</Loaded>
}

const MediaPart = (props: PartProps<Schemas["Model"]>) => {
  const part = useChunk("media", () => import("./MediaPlayground.tsx"))
  return <Loaded of={part}>{({ MediaPlayground }) => <MediaPlayground {...props} />}</Loaded>
}

const Picker = ({ models, name }: PlaygroundProps) => {
  const recent = recentModels().flatMap((it) => models.filter((model) => nameOf(model) === it))
  const groups = [
    [words.recent, recent.length > 1 ? recent : []] as const,
    ...kinds.map((kind) => [words.kinds[kind], models.filter((it) => kindOf(it) === kind)] as const)
  ]
  return (
    <Field label={words.model}>
      {(attributes) => (
        <select
          {...attributes}
          value={name}
          onChange={({ currentTarget }) => setQuery({ model: currentTarget.value, task: "" })}
        >
          {name === "" && <option value="">{words.choose}</option>}
          {groups
            .filter(([, members]) => members.length > 0)
            .map(([group, members]) => (
              <optgroup key={group} label={group}>
                {members.map((model) => (
                  <option key={nameOf(model)} value={nameOf(model)}>
                    {nameOf(model)} · {priceText(model)}
                  </option>
                ))}
              </optgroup>
            ))}
        </select>
      )}
    </Field>
  )
}
