import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { readAll } from "../../api/lists.ts"
import { NoPasskey } from "../../api/passkeys.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Confirm, DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { Ago } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { addPasskey } from "./addPasskey.ts"

type Passkey = Schemas["Passkey"]

const words = operatorTexts.passkeys
const nameMax = 100

interface Props {
  /** Absent: the signed-in user. */
  readonly user?: string | undefined
  readonly isReadOnly: boolean
  /** Removing a passkey ends sessions. */
  readonly onRemoved: () => void
}

/** A user's passkeys, each with a button to remove it. */
export const PasskeyList = ({ isReadOnly, onRemoved, user }: Props) => {
  const of = user === undefined ? {} : { user_id: user }
  const passkeys = useResource(user ?? "", () =>
    readAll((page) => api.GET("/manage/v1/passkeys", { query: { ...page, ...of } }))
  )
  const [isAdding, setAdding] = useState(false)
  const [asked, setAsked] = useState<Passkey | undefined>(undefined)
  return (
    <section>
      <div class="table-head">
        <h2>{words.title}</h2>
        {!isReadOnly && (
          <button type="button" onClick={() => setAdding(true)}>
            {words.add}
          </button>
        )}
      </div>
      <Loaded of={passkeys}>
        {(all) => (
          <Table
            caption={words.title}
            columns={isReadOnly ? columns : [...columns, removeColumn(setAsked)]}
            rows={all}
            idOf={({ id }) => id}
            empty={<Empty title={words.empty} detail={words.emptyDetail} />}
          />
        )}
      </Loaded>
      {isAdding && <AddDialog onAdded={passkeys.reload} onClose={() => setAdding(false)} />}
      {asked !== undefined && (
        <Confirm
          title={words.removeTitle}
          detail={words.removeDetail(asked.name)}
          action={words.remove}
          isDangerous
          onSubmit={async () => {
            await api.DELETE("/manage/v1/passkeys/{id}", { path: { id: asked.id } })
            passkeys.reload()
            onRemoved()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  )
}

const columns: ReadonlyArray<Column<Passkey>> = [
  { title: words.name, isPlain: true, cell: ({ name }) => <span class="clip">{name}</span> },
  { title: words.used, isNumber: true, cell: ({ last_used_at: at }) => <Ago at={at} /> },
  { title: words.created, isNumber: true, cell: ({ created_at: at }) => <Ago at={at} /> }
]

const removeColumn = (ask: (passkey: Passkey) => void): Column<Passkey> => ({
  title: texts.actions,
  isEnd: true,
  cell: (passkey) => (
    <button
      type="button"
      class="small danger"
      aria-label={words.removeOf(passkey.name)}
      onClick={() => ask(passkey)}
    >
      {words.remove}
    </button>
  )
})

interface AddProps {
  readonly onAdded: () => void
  readonly onClose: () => void
}

const AddDialog = ({ onAdded, onClose }: AddProps) => {
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const [isRefused, setRefused] = useState(false)
  const add = async () => {
    setRefused(false)
    try {
      await addPasskey({ name: name.trim(), password })
    } catch (cause) {
      if (!(cause instanceof NoPasskey)) throw cause
      setRefused(true)
      throw new FormFault()
    }
    onAdded()
  }
  return (
    <DialogForm title={words.addTitle} action={words.add} onSubmit={add} onClose={onClose}>
      <p>{words.addDetail}</p>
      <TextField
        label={words.name}
        help={words.nameHelp}
        required
        maxLength={nameMax}
        autocomplete="off"
        value={name}
        onText={setName}
      />
      <TextField
        label={operatorTexts.sessions.currentPassword}
        help={operatorTexts.sessions.currentHelp}
        type="password"
        autocomplete="current-password"
        value={password}
        onText={setPassword}
      />
      {isRefused && (
        <p class="field-error" role="alert">
          {words.refused}
        </p>
      )}
    </DialogForm>
  )
}
