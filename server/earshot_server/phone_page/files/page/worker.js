import { shippedEncoder } from "../hearing.js";
import { EarshotError, openPhone, } from "../index.js";
import { summaryOf } from "./results.js";
let phone;
const work = {
    async open(link, encoder, policy) {
        phone = openPhone({ ...link, encoder: await shippedEncoder(await fetch(encoder)), policy });
    },
    hear: (sound) => phone.hear(sound),
    label: (recording, choice) => phone.label(recording, choice),
    poll: async () => (await phone.poll()).groups,
    recordings: () => phone.recordings(),
    forget: (recording) => phone.forget(recording),
    ledger: () => phone.ledger(),
    standing: () => phone.standing(),
    refusal: () => phone.refusal(),
    visit: () => phone.visit(),
    async ending() {
        const ending = await phone.ending();
        return ending && summaryOf(ending);
    },
    told: () => phone.told(),
    export: () => phone.export(),
    leave: () => phone.leave(),
    erase: () => phone.erase(),
};
const [PATIENCE, LOOK] = [30_000, 200];
async function answer({ number, name, given }) {
    const until = Date.now() + PATIENCE;
    for (;;) {
        const told = await tried({ number, name, given });
        const isBusy = told.error?.name === "BusyError" && name !== "visit";
        if (!isBusy || Date.now() > until)
            return told;
        await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
}
async function tried({ number, name, given }) {
    try {
        const call = work[name];
        return { number, done: await call(...given) };
    }
    catch (error) {
        const isOurs = error instanceof EarshotError;
        const [kind, message] = isOurs ? [error.name, error.message] : ["Error", String(error)];
        return { number, error: { name: kind, message } };
    }
}
addEventListener("message", ({ data }) => {
    void answer(data).then((told) => postMessage(told));
});
