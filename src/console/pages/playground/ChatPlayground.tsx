import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { Schemas } from "../../api/schema.ts"
import { Code } from "../../components/code/Code.tsx"
import { Field } from "../../components/form/Field.tsx"
import { ProblemView } from "../../components/States.tsx"
import { shortcutOf } from "../../format/shortcut.ts"
import { viewedUser } from "../../router/location.ts"
import { chatTexts } from "../../texts/en/chat.ts"
import { playgroundTexts } from "../../texts/en/playground.ts"
import { Price } from "../models/price.tsx"
import { dialectOf } from "./chat.ts"
import type { ChatRequest, Message, Picture } from "./chat.ts"
import { Composer } from "./Composer.tsx"
import type { Attached } from "./Composer.tsx"
import { useDraft } from "./draft.ts"
import { noteRun } from "./runs.ts"
import type { Values } from "./runs.ts"
import { Runs } from "./Runs.tsx"
import { streamChat } from "./streamChat.ts"
import { Talk } from "./Talk.tsx"
import type { Turn } from "./Talk.tsx"
import { useCtrlEnter } from "./useCtrlEnter.ts"

type Model = Schemas["TokenModel"]

const words = chatTexts
const usualTokens = 500

const messagesOf = (
  turns: ReadonlyArray<Turn>,
  text: string,
  pictures: ReadonlyArray<Picture>
): ReadonlyArray<Message> => [
  ...turns.flatMap(({ answer, pictures: asked, question }): ReadonlyArray<Message> => [
    { role: "user", text: question, pictures: asked },
    { role: "assistant", text: answer }
  ]),
  { role: "user", text, pictures }
]

/** In code, pictures are replaced by their names. */
const named = (message: Message): Message => ({
  ...message,
  pictures: message.pictures?.map(({ mediaType }) => ({
    mediaType,
    data: playgroundTexts.media.omitted(mediaType)
  }))
})

/** The browser's storage has no room for pictures; after a reload only their number is shown. */
const withoutPictures = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> =>
  turns.map(({ pictures, ...turn }) =>
    pictures === undefined || pictures.length === 0
      ? turn
      : { ...turn, lostPictures: pictures.length }
  )

type Dialect = NonNullable<ReturnType<typeof dialectOf>>

/** The conversation, including the response that is being received. */
const useChat = (name: string, dialect: Dialect) => {
  const [turns, setTurns, updateTurns] = useDraft<ReadonlyArray<Turn>>(
    `turns ${name}`,
    [],
    withoutPictures
  )
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const change = (turn: Partial<Turn>) =>
    updateTurns((all) => all.map((it, n) => (n === all.length - 1 ? { ...it, ...turn } : it)))
  const ask = async (question: string, pictures: ReadonlyArray<Picture>, request: ChatRequest) => {
    const controller = new AbortController()
    running.current = controller
    setState({ isBusy: true })
    setTurns([...turns, { question, pictures, answer: "", isStopped: false }])
    try {
      await streamChat({ request, dialect, controller, onChange: change })
      setState({ isBusy: false })
    } catch (cause) {
      change({ isStopped: controller.signal.aborted })
      setState(controller.signal.aborted ? { isBusy: false } : { isBusy: false, cause })
    }
  }
  const begin = () => {
    setTurns([])
    setState({ isBusy: false })
  }
  return { ...state, turns, ask, begin, stop: () => running.current?.abort() }
}

interface Props {
  readonly model: Model
  readonly picker: ComponentChildren
}

/** The playground of a model priced per token. */
export const ChatPlayground = ({ model, picker }: Props) => {
  const dialect = dialectOf(model.path)
  return dialect === undefined ? (
    <Embedding model={model} picker={picker} />
  ) : (
    <Chat model={model} dialect={dialect} picker={picker} />
  )
}

interface ChatProps extends Props {
  readonly dialect: Dialect
}

/** A streamed conversation with a model, with the cost of each response. */
const Chat = ({ dialect, model, picker }: ChatProps) => {
  const name = `${model.vendor}/${model.model}`
  const [draft, setFields] = useDraft<Values>(name, {})
  const fields = fieldsOf(draft, Math.min(usualTokens, model.output_tokens_max))
  const { ask, begin, cause, isBusy, stop, turns } = useChat(name, dialect)
  const { maxTokens, message, system, temperature } = fields
  const [pictures, setPictures] = useState<ReadonlyArray<Attached>>([])
  const messages = messagesOf(turns, message, pictures)
  const requestOf = (said: ReadonlyArray<Message>) =>
    dialect.request({
      path: model.path,
      model: model.model,
      system,
      maxTokens,
      temperature: temperature === "" ? undefined : Number(temperature),
      messages: said
    })
  const form = useCtrlEnter()
  const send = () => {
    const title = message === "" ? pictures.map((it) => it.name).join(", ") : message
    noteRun({ model: name, values: { ...fields } }, title)
    setFields({ ...fields, message: "" })
    setPictures([])
    void ask(message, pictures, requestOf(messages))
  }
  return (
    <>
      <div class="playground chat">
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault()
            send()
          }}
        >
          <Talk turns={turns} isBusy={isBusy} />
          {cause !== undefined && <ProblemView cause={cause} />}
          <div class="run-bar">
            <Composer
              text={message}
              onText={(text) => setFields({ ...fields, message: text })}
              pictures={pictures}
              onPictures={setPictures}
            >
              {!isBusy && turns.length > 0 && (
                <button type="button" onClick={begin}>
                  {words.again}
                </button>
              )}
              {isBusy && (
                <button type="button" class="danger" onClick={stop}>
                  {words.stop}
                </button>
              )}
              <kbd class="faint">{shortcutOf("↵")}</kbd>
              <button type="submit" class="primary" disabled={isBusy || viewedUser() !== undefined}>
                {words.send}
              </button>
            </Composer>
          </div>
        </form>
        <section class="run-result">
          {picker}
          <p class="help">
            <Price of={model} />
          </p>
          <Settings fields={fields} most={model.output_tokens_max} onFields={setFields} />
        </section>
      </div>
      <Runs model={name} values={{ ...fields }} />
      <Code request={requestOf(messages.map(named))} />
    </>
  )
}

interface Fields extends Values {
  readonly system: string
  readonly message: string
  readonly temperature: string
  readonly maxTokens: number
}

/** The settings from the draft, or from a link, whose content cannot be trusted. */
const fieldsOf = (draft: Values, usualMaxTokens: number): Fields => {
  const text = (name: string) => (typeof draft[name] === "string" ? draft[name] : "")
  const { maxTokens } = draft
  return {
    system: text("system"),
    message: text("message"),
    temperature: text("temperature"),
    maxTokens: typeof maxTokens === "number" ? maxTokens : usualMaxTokens
  }
}

interface FieldsProps {
  readonly fields: Fields
  readonly onFields: (fields: Fields) => void
}

/** Outside the form, because the browser validates only the message. */
const Settings = ({ fields, most, onFields }: FieldsProps & { readonly most: number }) => (
  <div class="settings">
    <Field label={words.system}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={4}
          value={fields.system}
          onInput={({ currentTarget }) => onFields({ ...fields, system: currentTarget.value })}
        />
      )}
    </Field>
    <Field label={words.maxTokens}>
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          min={1}
          max={most}
          value={fields.maxTokens}
          onInput={({ currentTarget: { valueAsNumber } }) =>
            onFields({ ...fields, maxTokens: Number.isNaN(valueAsNumber) ? 1 : valueAsNumber })
          }
        />
      )}
    </Field>
    <Field label={words.temperature} help={words.temperatureHelp}>
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          min={0}
          max={2}
          step={0.1}
          value={fields.temperature}
          onInput={({ currentTarget }) => onFields({ ...fields, temperature: currentTarget.value })}
        />
      )}
    </Field>
  </div>
)

/** A model without a conversation. */
const Embedding = ({ model, picker }: Props) => (
  <>
    {picker}
    <p>{words.embedding}</p>
    <Code
      request={{
        path: model.path,
        body: model.path.includes(":")
          ? { content: { parts: [{ text: "A lighthouse" }] } }
          : { model: model.model, input: "A lighthouse" }
      }}
    />
  </>
)
