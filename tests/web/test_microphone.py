"""A real browser hears a file through its microphone, and embeds it as Python does."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, sync_playwright
from support.browser import executable
from support.dashboard_browser import ARGUMENTS
from support.web_pages import served

from earshot_client.encoder import default_encoder
from earshot_client.features import one_second
from earshot_models.soundscapes import synthesize

RATE = 48_000
SCENE = "machine hum"

_KEEP_STREAMS = """
() => {
  window.given = [];
  window.asked = [];
  const devices = navigator.mediaDevices;
  const get = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (constraints) => {
    asked.push(constraints);
    const stream = await get(constraints);
    given.push(...stream.getTracks());
    return stream;
  };
}
"""
_LISTEN = """
async (worklet) => {
  const { listen } = await import("/client/web/phone/microphone.ts");
  try {
    const { channels, rate } = await listen(worklet);
    const samples = channels[0];
    const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return { channels: channels.length, rate, samples: btoa(text) };
  } catch (error) {
    return { error: error.name, message: error.message };
  }
}
"""
"""The samples, or the error; in base64, as a list of numbers would take longer than the second."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine seconds of one place; the browser plays them over and over."""
    sound = synthesize(SCENE, 9, np.random.default_rng(5), RATE).reshape(-1)
    path = tmp_path_factory.mktemp("sound") / "place.wav"
    soundfile.write(path, 0.2 * sound / np.abs(sound).max(), RATE, subtype="PCM_16")
    return path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def page(recording: Path, address: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(),
            args=[
                *ARGUMENTS,
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={recording}",
            ],
        )
        try:
            page = browser.new_context(permissions=["microphone"]).new_page()
            page.goto(address)
            page.evaluate(_KEEP_STREAMS)
            yield page
        finally:
            browser.close()


def test_it_hears_one_second_of_what_is_played_and_is_off_at_once(
    page: Page, recording: Path
) -> None:
    heard = page.evaluate(_LISTEN, "/client/web/page/worklet.ts")
    assert "error" not in heard, heard
    samples = np.frombuffer(base64.b64decode(heard["samples"]), dtype="<f4")
    assert (heard["channels"], len(samples)) == (1, heard["rate"])
    assert heard["rate"] == page.evaluate("new AudioContext().sampleRate")
    assert samples[:128].any()  # from the first block on that is no silence
    assert page.evaluate("given.map((track) => track.readyState)") == ["ended"]
    off = {"echoCancellation": False, "noiseSuppression": False, "autoGainControl": False}
    assert page.evaluate("asked[0].audio") == {**off, "channelCount": 1}

    played, rate = soundfile.read(recording, dtype="float32")
    encoder = default_encoder()
    seconds = [one_second(second, rate, 16_000) for second in played.reshape(-1, rate)]
    expected = encoder.embed(np.stack(seconds))
    ours = encoder.embed(one_second(samples, heard["rate"], 16_000)[None])[0]
    # As near to each second of the file as these are to each other.
    among = expected @ expected.T
    assert np.mean(expected @ ours) >= among[~np.eye(len(among), dtype=bool)].mean() - 0.1


def test_a_browser_embeds_it_as_python_does(page: Page) -> None:
    said: dict[str, Any] = page.evaluate(
        """async () => {
          const { listen } = await import("/client/web/phone/microphone.ts");
          const { oneSecond } = await import("/client/web/phone/features.ts");
          const { shippedEncoder } = await import("/client/web/phone/encoder.ts");
          const { bytesOf } = await import("/tests/web/files.ts");
          const file = "protocol/earshot_protocol/data/contrast-3.tflite";
          const encoder = await shippedEncoder(await bytesOf(file));
          const second = oneSecond(await listen("/client/web/page/worklet.ts"), encoder.rate);
          return { second: Array.from(second), embedding: Array.from(encoder.embed(second)) };
        }"""
    )
    expected = default_encoder().embed(np.array([said["second"]], dtype=np.float32))[0]
    assert expected @ np.array(said["embedding"]) >= 0.9995


def test_a_headset_s_microphone_keeps_its_rate(page: Page) -> None:
    """A browser would fill up what 8 kHz lack, and no encoder could tell."""
    heard = page.evaluate(
        """async () => {
          const { prototype } = MediaStreamTrack;
          const { getSettings } = prototype;
          prototype.getSettings = function () {
            return { ...getSettings.call(this), sampleRate: 8000 };
          };
          const { listen } = await import("/client/web/phone/microphone.ts");
          try {
            const { channels, rate } = await listen("/client/web/page/worklet.ts");
            return [channels[0].length, rate];
          } finally {
            prototype.getSettings = getSettings;
          }
        }"""
    )
    assert heard == [8000, 8000]


def test_no_track_outlives_a_failure(page: Page) -> None:
    failed = page.evaluate(_LISTEN, "/client/web/page/nowhere.ts")
    assert failed["error"] == "MicrophoneError"
    assert set(page.evaluate("given.map((track) => track.readyState)")) == {"ended"}


def test_a_microphone_that_is_lost_while_it_listens_is_named(page: Page) -> None:
    page.evaluate(
        """() => {
          const resume = AudioContext.prototype.resume;
          AudioContext.prototype.resume = function () {
            AudioContext.prototype.resume = resume;
            given.at(-1).dispatchEvent(new Event("ended"));
            return resume.call(this);
          };
        }"""
    )
    failed = page.evaluate(_LISTEN, "/client/web/page/worklet.ts")
    assert failed == {
        "error": "MicrophoneError",
        "message": "the microphone was lost while it listened",
    }
    assert set(page.evaluate("given.map((track) => track.readyState)")) == {"ended"}


def test_a_refusal_says_what_to_do(page: Page) -> None:
    page.evaluate(
        """() => {
          navigator.mediaDevices.getUserMedia = async () => {
            throw new DOMException("Permission denied", "NotAllowedError");
          };
        }"""
    )
    failed = page.evaluate(_LISTEN, "/client/web/page/worklet.ts")
    assert failed["error"] == "MicrophoneError"
    assert "allow this page the microphone" in failed["message"]


def test_a_page_that_is_not_secure_gets_none(page: Page) -> None:
    page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")
    failed = page.evaluate(_LISTEN, "/client/web/page/worklet.ts")
    assert failed["error"] == "MicrophoneError"
    assert "https" in failed["message"]
