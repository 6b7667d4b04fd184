"""Spoken digits whose speakers are private: teachers, answers about generated clips, students."""
