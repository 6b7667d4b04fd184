/** The server, and the two organizations that this app's users trust: put in your own. */

/** Address of the server; the page may call no other. */
export const SERVER = "https://earshot.example.org";
/** Key of the server's operator, as `earshot operator keys` prints it. */
export const LEADER = "11".repeat(32);
/** Key of the helper's operator, obtained from that organization itself. */
export const HELPER = "22".repeat(32);
