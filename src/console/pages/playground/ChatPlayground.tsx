import { useEffect, useRef, useState } from "preact/hooks"
import type { Schemas } from "../../api/schema.ts"
import { Field, TextField } from "../../components/Field.tsx"
import { ProblemView } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { playgroundTexts } from "../../texts/en/playground.ts"
import { Price } from "../models/price.tsx"
import { dialectOf } from "./chat.ts"
import type { ChatRequest, Message } from "./chat.ts"
import { Code } from "./Code.tsx"
import { streamChat } from "./streamChat.ts"
import { Talk } from "./Talk.tsx"
import type { Turn } from "./Talk.tsx"

type Model = Schemas["TokenModel"]

const words = playgroundTexts.chat
const usualTokens = 500

const messagesOf = (turns: ReadonlyArray<Turn>, next: string): ReadonlyArray<Message> => [
  ...turns.flatMap(({ answer, question }): ReadonlyArray<Message> => [
    { role: "user", text: question },
    { role: "assistant", text: answer }
  ]),
  { role: "user", text: next }
]

type Dialect = NonNullable<ReturnType<typeof dialectOf>>

/** What was said, and the answer that is under way. It ends with the page. */
const useChat = (dialect: Dialect) => {
  const [turns, setTurns] = useState<ReadonlyArray<Turn>>([])
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const change = (turn: Partial<Turn>) =>
    setTurns((all) => all.map((it, n) => (n === all.length - 1 ? { ...it, ...turn } : it)))
  const ask = async (question: string, request: ChatRequest) => {
    const controller = new AbortController()
    running.current = controller
    setState({ isBusy: true })
    setTurns([...turns, { question, answer: "", isStopped: false }])
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

/** A model that is asked by the token. */
export const ChatPlayground = ({ model }: { readonly model: Model }) => {
  const dialect = dialectOf(model.path)
  return dialect === undefined ? (
    <Embedding model={model} />
  ) : (
    <Chat model={model} dialect={dialect} />
  )
}

interface ChatProps {
  readonly model: Model
  readonly dialect: Dialect
}

/** A conversation with a model, streamed, with what each answer cost. */
const Chat = ({ dialect, model }: ChatProps) => {
  const [fields, setFields] = useState({
    system: "",
    message: "",
    maxTokens: Math.min(usualTokens, model.output_tokens_max)
  })
  const { ask, begin, cause, isBusy, stop, turns } = useChat(dialect)
  const { maxTokens, message, system } = fields
  const request = dialect.request({
    path: model.path,
    model: model.model,
    system,
    maxTokens,
    messages: messagesOf(turns, message)
  })
  const send = () => {
    setFields({ ...fields, message: "" })
    void ask(message, request)
  }
  return (
    <>
      <p class="faint">
        <Price of={model} />
      </p>
      <Talk turns={turns} isBusy={isBusy} />
      {cause !== undefined && <ProblemView cause={cause} />}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
      >
        <MessageFields fields={fields} most={model.output_tokens_max} onFields={setFields} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy || viewedUser() !== undefined}>
            {words.send}
          </button>
          {isBusy && (
            <button type="button" class="danger" onClick={stop}>
              {words.stop}
            </button>
          )}
          {!isBusy && turns.length > 0 && (
            <button type="button" onClick={begin}>
              {words.again}
            </button>
          )}
        </div>
      </form>
      <Code request={request} />
    </>
  )
}

interface Fields {
  readonly system: string
  readonly message: string
  readonly maxTokens: number
}

interface FieldsProps {
  readonly fields: Fields
  readonly most: number
  readonly onFields: (fields: Fields) => void
}

const MessageFields = ({ fields, most, onFields }: FieldsProps) => (
  <>
    <Field label={words.message} isRequired>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={4}
          required
          value={fields.message}
          onInput={({ currentTarget }) => onFields({ ...fields, message: currentTarget.value })}
        />
      )}
    </Field>
    <div class="columns">
      <TextField
        label={words.system}
        value={fields.system}
        onText={(system) => onFields({ ...fields, system })}
      />
      <Field label={words.maxTokens}>
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            required
            min={1}
            max={most}
            value={fields.maxTokens}
            onInput={({ currentTarget: { valueAsNumber } }) =>
              onFields({ ...fields, maxTokens: Number.isNaN(valueAsNumber) ? 1 : valueAsNumber })
            }
          />
        )}
      </Field>
    </div>
  </>
)

/** A model without a conversation. */
const Embedding = ({ model }: { readonly model: Model }) => (
  <>
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
