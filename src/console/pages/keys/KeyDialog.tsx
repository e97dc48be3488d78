import { useModelNames } from "../../api/lists.ts"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { SelectField, TextField } from "../../components/form/Field.tsx"
import { Fold } from "../../components/form/Fold.tsx"
import { useFields } from "../../components/form/useFields.ts"
import { texts } from "../../texts/en.ts"
import { keyTexts } from "../../texts/en/keys.ts"
import { faultsOf, fieldsOf, resets, scopes } from "./keyForm.ts"
import type { ApiKey, KeyFields, Scope } from "./keyForm.ts"

const words = keyTexts

interface Props {
  /** The key to change. Absent: a new key. */
  readonly of?: ApiKey | undefined
  readonly onSubmit: (fields: KeyFields) => Promise<void>
  readonly onClose: () => void
}

/** The name, scopes, budget, models and limits of a key. */
export const KeyDialog = ({ of, onClose, onSubmit }: Props) => {
  const { change, fields, isFaulty, text } = useFields(() => fieldsOf(of), faultsOf)
  const submit = async () => {
    if (isFaulty) throw new FormFault()
    await onSubmit(fields)
  }
  return (
    <DialogForm
      title={of === undefined ? words.create : words.change}
      action={of === undefined ? words.create : texts.save}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={words.name}
        help={words.nameHelp}
        required
        maxLength={200}
        autocomplete="off"
        {...text("name")}
      />
      {of === undefined && (
        <Scopes chosen={fields.scopes} onChosen={(chosen) => change({ scopes: chosen })} />
      )}
      <Fold name={words.advanced} isFaulty={isFaulty} isOpenAtFirst={of !== undefined}>
        <div class="columns narrow-columns">
          <TextField
            label={words.budget}
            help={words.budgetHelp}
            inputMode="decimal"
            {...text("budget")}
          />
          <SelectField
            label={words.reset}
            help={words.resetHelp}
            options={resets.map((it) => [it, words.resets[it]])}
            {...text("reset")}
          />
          <TextField label={words.rate} inputMode="numeric" {...text("rate")} />
          <TextField label={words.tasks} inputMode="numeric" {...text("tasks")} />
        </div>
        <Models {...text("models")} />
        <TextField
          label={words.expires}
          help={words.expiresHelp}
          type="datetime-local"
          {...text("expires")}
        />
      </Fold>
    </DialogForm>
  )
}

interface ScopesProps {
  readonly chosen: ReadonlyArray<Scope>
  readonly onChosen: (chosen: ReadonlyArray<Scope>) => void
}

const Scopes = ({ chosen, onChosen }: ScopesProps) => (
  <fieldset>
    <legend>{words.scopes}</legend>
    {scopes.map((scope) => (
      <label key={scope} class="choice">
        <input
          type="checkbox"
          checked={chosen.includes(scope)}
          // The API refuses a key without scopes
          required={chosen.length === 0}
          onChange={({ currentTarget: { checked } }) =>
            onChosen(scopes.filter((it) => (it === scope ? checked : chosen.includes(it))))
          }
        />{" "}
        {words.scopeNames[scope]}
      </label>
    ))}
  </fieldset>
)

interface ModelsProps {
  readonly value: string
  readonly onText: (text: string) => void
}

/** Chooses the allowed models one by one. */
const Models = ({ onText, value }: ModelsProps) => {
  const { models } = useModelNames()
  const chosen = value.split("\n").filter((line) => line.trim() !== "")
  const others = models.filter(([name]) => !chosen.includes(name))
  return (
    <>
      <SelectField
        label={words.addModel}
        help={words.modelsHelp}
        value=""
        options={[["", chosen.length === 0 ? words.allModels : words.chooseModel], ...others]}
        onText={(name) => onText([...chosen, name].join("\n"))}
      />
      {chosen.length > 0 && (
        <ul class="chips" aria-label={words.models}>
          {chosen.map((name) => (
            <li key={name}>
              {name}
              <button
                type="button"
                class="quiet small"
                aria-label={words.removeModel(name)}
                onClick={() => onText(chosen.filter((it) => it !== name).join("\n"))}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
